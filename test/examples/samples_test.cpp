#include "examples/train/samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "dpwa/base/random.h"

using namespace dpwa::train;
using namespace dpwa;

namespace {

const Shard seven{3, 5, 8, 13, 21, 34, 55};

Shard take(SampleStream& stream, std::uint64_t position, std::size_t count) {
  const auto samples = stream.at(position, count);
  return {samples.begin(), samples.end()};
}

constexpr std::size_t data_size = 103;

Shard all_samples() {
  Shard all(data_size);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

using StateMemory = std::array<std::int64_t, 2>;

// One node of a group: its samples, and what it hands to others.
struct Member {
  StateMemory state{};
  Samples samples;
  RunPosition position;

  explicit Member(RunLength length, std::uint64_t batch_size = 4, std::uint64_t least = 1)
      : samples(
            Samples::shared(SampleStream(all_samples(), 77), batch_size, length, least, state)) {
    samples.seek(position);
  }
};

using Group = std::vector<std::unique_ptr<Member>>;

Group group_of(std::size_t nodes, RunLength length) {
  Group group;
  for (std::size_t i = 0; i < nodes; ++i) group.push_back(std::make_unique<Member>(length));
  return group;
}

// One step of all; what they took, appended to `taken`.
void step(Group& group, Shard& taken) {
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const auto samples = group[rank]->samples.next({rank, group.size()});
    taken.insert(taken.end(), samples.begin(), samples.end());
    group[rank]->position.samples += samples.size();
  }
  for (const auto& member : group) member->samples.settle(member->position);
}

bool each_once(const Shard& taken) {
  Shard sorted = taken;
  std::sort(sorted.begin(), sorted.end());
  return sorted == all_samples();
}

}  // namespace

TEST_CASE("each pass takes every sample of the shard once, in an order of its own") {
  SampleStream stream(seven, 1);
  Shard first = take(stream, 0, seven.size());
  Shard second = take(stream, 7, seven.size());
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == seven);
  CHECK(second == seven);
}

TEST_CASE("the sequence depends on the seed and not on the batch size") {
  SampleStream one(seven, 1);
  SampleStream other(seven, 2);
  SampleStream in_threes(seven, 1);
  const Shard whole = take(one, 0, 30);
  CHECK(take(other, 0, 30) != whole);
  Shard joined;
  for (std::uint64_t position = 0; position < 30; position += 3)
    for (const auto sample : in_threes.at(position, 3)) joined.push_back(sample);
  CHECK(joined == whole);
}

TEST_CASE("any position goes on with the very same sequence") {
  SampleStream stream(seven, 9);
  const Shard whole = take(stream, 0, 40);
  for (const std::size_t position : {0, 1, 6, 7, 8, 14, 33}) {
    SampleStream resumed(seven, 9);
    const Shard rest(whole.begin() + static_cast<std::ptrdiff_t>(position), whole.end());
    CHECK(take(resumed, position, rest.size()) == rest);
  }
  CHECK(take(stream, 3, 5) == Shard(whole.begin() + 3, whole.begin() + 8));  // backwards too
}

TEST_CASE("a shard smaller than the batch is taken several times over") {
  SampleStream stream({42}, 1);
  CHECK(take(stream, 0, 4) == Shard{42, 42, 42, 42});
}

TEST_CASE(
    "a node's own samples end with a smaller batch, and seeking goes on behind what is done") {
  StateMemory state{};
  Samples samples = Samples::own(SampleStream({1, 2, 3, 4, 5, 6, 7}, 3), 4, 10, state);
  CHECK(samples.next({}).size() == 4);
  CHECK(samples.done() == doctest::Approx(0.4));
  CHECK(samples.next({}).size() == 4);
  const auto last = samples.next({});
  const Shard rest(last.begin(), last.end());
  CHECK(rest.size() == 2);
  CHECK(samples.ended());
  RunPosition position;
  position.samples = 8;
  samples.seek(position);
  CHECK_FALSE(samples.ended());
  const auto again = samples.next({2, 5});  // whatever its place
  CHECK(Shard(again.begin(), again.end()) == rest);
}

TEST_CASE("nodes that come and go take every sample once an epoch, in an order of its own") {
  Random random(4);
  for (int run = 0; run < 20; ++run) {
    Group group = group_of(1 + random.below(5), {3 * data_size, SharedCursor::no_end});
    Shard taken;
    while (!group.front()->samples.ended()) {
      step(group, taken);
      switch (random.below(4)) {
        case 0:  // one is lost, the first one or another
          if (group.size() > 1)
            group.erase(group.begin() + static_cast<std::ptrdiff_t>(random.below(group.size())));
          break;
        case 1:  // one comes, and takes over what the others hold
          group.push_back(std::make_unique<Member>(RunLength{3 * data_size, SharedCursor::no_end}));
          group.back()->state = group.front()->state;
          group.back()->samples.settle(group.back()->position);
          CHECK(group.back()->position.step == group.front()->position.step);
          break;
        default:
          break;
      }
    }
    REQUIRE(taken.size() == 3 * data_size);
    std::vector<Shard> epochs;
    for (std::size_t from = 0; from < taken.size(); from += data_size)
      epochs.emplace_back(taken.begin() + static_cast<std::ptrdiff_t>(from),
                          taken.begin() + static_cast<std::ptrdiff_t>(from + data_size));
    for (const Shard& epoch : epochs) CHECK(each_once(epoch));
    CHECK(epochs[0] != epochs[1]);
    for (const auto& member : group) CHECK(member->samples.ended());
  }
}

TEST_CASE("what nodes take together is the order that one node alone takes") {
  Shard alone, together;
  Group one;
  one.push_back(std::make_unique<Member>(RunLength{200, SharedCursor::no_end}, 12));
  Group three = group_of(3, {200, SharedCursor::no_end});
  while (!one.front()->samples.ended()) step(one, alone);
  while (!three.front()->samples.ended()) step(three, together);
  CHECK(alone == together);
  CHECK(one.front()->position.step == three.front()->position.step);
}

TEST_CASE("a resume with another number of nodes goes on at the same position") {
  const RunLength length{data_size, SharedCursor::no_end};
  Group group = group_of(4, length);
  Shard taken;
  for (int i = 0; i < 3; ++i) step(group, taken);
  CHECK(group.front()->samples.done() == doctest::Approx(48.0 / data_size));
  const RunPosition checkpoint = group.front()->position;
  CHECK(checkpoint.cursor == 48);
  CHECK(checkpoint.step == 3);
  CHECK(checkpoint.samples == 12);
  Group two = group_of(2, length);
  for (const auto& member : two) {
    member->position = checkpoint;
    member->samples.seek(checkpoint);
  }
  CHECK(two.front()->samples.done() == doctest::Approx(48.0 / data_size));
  while (!two.front()->samples.ended()) step(two, taken);
  CHECK(each_once(taken));
}

TEST_CASE("a length in steps ends after them, however many nodes make them") {
  Group group = group_of(2, {SharedCursor::no_end, 5});
  Shard taken;
  for (int i = 0; i < 5; ++i) {
    CHECK(group.front()->samples.done() == doctest::Approx(i / 5.0));
    CHECK_FALSE(group.front()->samples.ended());
    step(group, taken);
    if (i == 2) group.pop_back();
  }
  CHECK(group.front()->samples.ended());
  CHECK(taken.size() == 3 * 8 + 2 * 4);
}

TEST_CASE("with fewer samples left than nodes some have none, and with BatchNorm none has one") {
  const RunLength length{6, SharedCursor::no_end};
  Group group = group_of(5, length);
  group.front()->samples.seek({0, 0, 0, 3});
  CHECK(group.front()->samples.next({0, 5}).size() == 1);
  Member late(length);
  late.samples.seek({0, 0, 0, 3});
  CHECK(late.samples.next({4, 5}).empty());
  CHECK(late.samples.ended());
  Member normed(length, 4, 2);
  CHECK(normed.samples.next({2, 5}).size() == 2);
  normed.samples.seek({});
  CHECK(normed.samples.next({3, 5}).empty());
}

TEST_CASE("a shard goes on at the step of the others, past the samples between") {
  StateMemory state{};
  Samples samples = Samples::own(SampleStream({0, 1, 2, 3, 4, 5, 6, 7}, 1), 2, 20, state);
  RunPosition position;
  samples.next({});
  position = {1, 2};
  samples.go_on_at(1, position, /*back=*/true);
  samples.go_on_at(0, position, /*back=*/false);
  CHECK(position.step == 1);
  samples.go_on_at(7, position, /*back=*/false);
  CHECK(position.step == 7);
  CHECK(position.samples == 2);  // only those that this node has trained on
  CHECK(position.of_stream() == 14);
  CHECK(samples.done() == doctest::Approx(0.7));
  CHECK(!samples.ended());
  for (const std::uint64_t beyond : {25, 26}) {  // the others have ended
    samples.go_on_at(beyond, position, /*back=*/true);
    CHECK(position.step == 10);
    CHECK(position.samples == 2);
    CHECK(position.of_stream() == 20);
  }
  CHECK(samples.ended());
}

TEST_CASE("a shard goes back to the step of the run, and takes the samples after it again") {
  StateMemory state{};
  Samples samples = Samples::own(SampleStream({0, 1, 2, 3, 4, 5, 6, 7}, 1), 2, 20, state);
  std::vector<Shard> taken;
  for (int step = 0; step < 7; ++step) {
    const auto batch = samples.next({});
    taken.emplace_back(batch.begin(), batch.end());
  }
  RunPosition position{7, 12, 0, std::nullopt, 2};
  samples.go_on_at(3, position, /*back=*/true);
  CHECK(position.step == 3);
  CHECK(position.samples == 6);
  CHECK(position.of_stream() == 6);
  CHECK(samples.done() == doctest::Approx(0.3));
  for (std::size_t step = 3; step < 7; ++step) {
    const auto again = samples.next({});
    CHECK(Shard(again.begin(), again.end()) == taken[step]);
  }
}

TEST_CASE("nodes with streams of their own are where the group is, ahead or behind") {
  StateMemory own{};
  StateMemory others{};
  Samples samples = Samples::own(SampleStream({0, 1, 2, 3, 4, 5, 6, 7}, 1), 2, 20, own);
  Samples group = Samples::own(SampleStream({8, 9, 10}, 1), 2, 20, others);
  RunPosition position;
  for (const int steps : {6, 2}) {
    CAPTURE(steps);
    samples.seek({4, 8});
    group.seek({});
    for (int step = 0; step < steps; ++step) group.next({});
    samples.next({});
    position = {5, 10};
    samples.settle(position);
    CHECK(position.step == 5);  // nobody has moved it
    own = others;
    samples.settle(position);
    CHECK(position.step == static_cast<std::uint64_t>(steps));
    CHECK(position.samples == std::min(10, 2 * steps));
    CHECK(samples.done() == group.done());
    CHECK(samples.position() == group.position());
  }
}

TEST_CASE("nodes that step together are as far as each other, though shards differ by a sample") {
  TrainOptions options;
  options.epochs = 1;
  Config config;
  config.self = "a";
  config.nodes.resize(1);
  config.nodes[0].name = "a";
  config.backend = Backend::collective;
  std::vector<double> done;
  for (const std::size_t size : {3, 2}) {  // 5 samples on 2 nodes
    Plan plan(options, config, {});
    plan.identity.train_size = 5;
    plan.identity.nodes = 2;
    StateMemory state{};
    Samples samples =
        Samples::own(SampleStream(Shard(size, 0), 1), 1, size, state, plan.common_length());
    samples.next({});
    done.push_back(samples.done());
  }
  CHECK(done[0] == done[1]);
  CHECK(done[0] == doctest::Approx(1 / 2.5));
  config.backend = Backend::gossip;  // each by itself
  CHECK(Plan(options, config, {}).common_length() == 0);
}
