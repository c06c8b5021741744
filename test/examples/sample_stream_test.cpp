#include "examples/train/sample_stream.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace dpwa::train;

namespace {

const Shard shard{3, 5, 8, 13, 21, 34, 55};

Shard take(SampleStream& stream, std::size_t count) {
  const auto samples = stream.next(count);
  return {samples.begin(), samples.end()};
}

}  // namespace

TEST_CASE("each pass takes every sample of the shard once, in an order of its own") {
  SampleStream stream(shard, 1);
  Shard first = take(stream, shard.size());
  Shard second = take(stream, shard.size());
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == shard);
  CHECK(second == shard);
  CHECK(stream.pass() == 2);
}

TEST_CASE("the sequence depends on the seed and not on the batch size") {
  SampleStream one(shard, 1);
  SampleStream other(shard, 2);
  SampleStream in_threes(shard, 1);
  const Shard whole = take(one, 30);
  CHECK(take(other, 30) != whole);
  Shard joined;
  for (int i = 0; i < 10; ++i)
    for (const auto sample : in_threes.next(3)) joined.push_back(sample);
  CHECK(joined == whole);
}

TEST_CASE("seeking to any position goes on with the very same sequence") {
  SampleStream stream(shard, 9);
  const Shard whole = take(stream, 40);
  for (const std::size_t position : {0, 1, 6, 7, 8, 14, 33}) {
    SampleStream resumed(shard, 9);
    resumed.seek(position);
    CHECK(resumed.position() == position);
    const Shard rest(whole.begin() + static_cast<std::ptrdiff_t>(position), whole.end());
    CHECK(take(resumed, rest.size()) == rest);
  }
  stream.seek(3);  // backwards too
  CHECK(take(stream, 5) == Shard(whole.begin() + 3, whole.begin() + 8));
}

TEST_CASE("a shard smaller than the batch is taken several times over") {
  SampleStream stream({42}, 1);
  CHECK(take(stream, 4) == Shard{42, 42, 42, 42});
}
