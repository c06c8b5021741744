#include "dpwa/parallel/shares.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "dpwa/base/random.h"

using namespace dpwa;

TEST_CASE("shard sizes add up, differ by at most one, and the first ones are larger") {
  CHECK(shard_sizes(10, 4) == std::vector<std::uint64_t>{3, 3, 2, 2});
  CHECK(shard_sizes(2, 4) == std::vector<std::uint64_t>{1, 1, 0, 0});
  for (std::uint64_t total = 0; total < 70; ++total) {
    for (std::uint64_t parts = 1; parts < 12; ++parts) {
      const auto sizes = shard_sizes(total, parts);
      REQUIRE(sizes.size() == parts);
      CHECK(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == total);
      CHECK(sizes.front() - sizes.back() <= 1);
      CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
      std::uint64_t from = 0;
      for (std::uint64_t i = 0; i < parts; ++i) {
        CHECK(shard(total, parts, i).from == from);
        from = shard(total, parts, i).end();
      }
      CHECK(from == total);
    }
  }
}

TEST_CASE("as few devices as possible work on a batch, none longer than if all did") {
  CHECK(fewest_devices(5, 4) == 3);
  CHECK(fewest_devices(9, 8) == 5);
  CHECK(fewest_devices(8, 8) == 8);
  CHECK(fewest_devices(1, 8) == 1);
  for (std::uint64_t devices = 1; devices < 10; ++devices) {
    for (std::uint64_t batch = 1; batch <= 4 * devices; ++batch) {
      const auto longest = [&](std::uint64_t used) { return shard_sizes(batch, used).front(); };
      const std::uint64_t used = fewest_devices(batch, devices);
      CHECK(used <= devices);
      CHECK(longest(used) == longest(devices));
      if (used > 1) CHECK(longest(used - 1) > longest(devices));
    }
  }
}

TEST_CASE("with BatchNorm no device has one sample alone, unless that is the whole batch") {
  CHECK(parts_of_at_least(7, 4, 2) == 3);
  CHECK(parts_of_at_least(1, 4, 2) == 1);
  CHECK(parts_of_at_least(0, 4, 2) == 1);
  CHECK(parts_of_at_least(100, 4, 2) == 4);
  for (std::uint64_t devices = 1; devices < 10; ++devices) {
    for (std::uint64_t batch = 1; batch <= 4 * devices; ++batch) {
      const auto shares = device_shares(batch, devices, 2);
      std::uint64_t from = 0;
      for (const ItemRange& share : shares) {
        CHECK(share.from == from);
        CHECK(share.count >= std::min<std::uint64_t>(batch, 2));
        from = share.end();
      }
      CHECK(from == batch);
      CHECK(shares.front().count - shares.back().count <= 1);
    }
  }
}

namespace {

// How often each position was taken.
class Taken {
 public:
  explicit Taken(std::uint64_t end) : times_(end) {}
  void add(const ItemRange& part) {
    for (std::uint64_t i = part.from; i < part.end(); ++i) ++times_.at(i);
  }
  bool each_once() const {
    return std::ranges::all_of(times_, [](int times) { return times == 1; });
  }

 private:
  std::vector<int> times_;
};

}  // namespace

TEST_CASE("members take neighbouring parts of a step, and share out what is left at the end") {
  SharedCursor cursor(10, 75);
  CHECK(cursor.part(0, 3).from == 0);
  CHECK(cursor.part(2, 3).from == 20);
  CHECK(cursor.part(2, 3).count == 10);
  cursor.advance(3);
  cursor.advance(3);
  CHECK(cursor.position() == 60);
  CHECK(cursor.part(0, 4).count == 4);  // 15 samples for 4 members
  CHECK(cursor.part(3, 4).count == 3);
  CHECK(cursor.part(3, 4).end() == 75);
  cursor.advance(4);
  CHECK(cursor.ended());
  CHECK(cursor.part(0, 4).count == 0);
  cursor.advance(4);
  CHECK(cursor.position() == 75);
}

TEST_CASE("no part is below the least size, if need be by leaving members without samples") {
  SharedCursor cursor(8, 5, 2);
  CHECK(cursor.part(0, 4).count == 3);
  CHECK(cursor.part(1, 4).count == 2);
  CHECK(cursor.part(2, 4).count == 0);
  CHECK(cursor.part(3, 4).count == 0);
}

TEST_CASE("every sample is taken once, whatever number of members each step has") {
  Random random(8);
  for (int run = 0; run < 300; ++run) {
    const std::uint64_t end = 1 + random.below(2000);
    const std::uint64_t batch = 1 + random.below(40);
    const std::uint64_t least = 1 + random.below(2);
    Taken taken(end);
    // As many as there may be; those that are away take no part, and come back with the position
    // of the others.
    std::vector<SharedCursor> members(9, SharedCursor(batch, end, least));
    std::uint64_t position = 0;
    while (position < end) {
      const std::uint64_t size = 1 + random.below(members.size());
      std::uint64_t smallest = ~0ULL, largest = 0;
      for (std::uint64_t rank = 0; rank < size; ++rank) {
        SharedCursor& member = members[rank];
        member.seek(position);
        const ItemRange part = member.part(rank, size);
        taken.add(part);
        if (part.count > 0) smallest = std::min(smallest, part.count);
        largest = std::max(largest, part.count);
        member.advance(size);
        REQUIRE(member.position() == members.front().position());
      }
      CHECK(largest <= std::max(batch, 2 * std::min(least, batch) - 1));
      CHECK(largest - smallest <= 1);
      REQUIRE(members.front().position() > position);
      position = members.front().position();
    }
    CHECK(taken.each_once());
  }
}
