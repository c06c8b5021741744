#include "dpwa/kvserver/epoch_words.h"

#include <doctest/doctest.h>

using namespace dpwa;
using kvserver::EpochWords;
using Lines = std::vector<std::string>;

namespace {

constexpr std::uint64_t epoch_of_start = 1'790'000'000'000'001;

kvstore::Epoch epoch_of(std::uint64_t number, std::vector<kvstore::WorkerEntry> workers,
                        std::vector<std::string> left = {}) {
  kvstore::Epoch epoch;
  epoch.number = epoch_of_start + number - 1;
  epoch.run = epoch_of_start;
  epoch.servers = {{{"s1", 5}, kvstore::ServerState::up}};
  epoch.workers = std::move(workers);
  epoch.left = std::move(left);
  return epoch;
}

const kvstore::WorkerEntry w1{{"w1", 7}, 0};
const kvstore::WorkerEntry w2{{"w2", 8}, 0};

Lines look(EpochWords& words, const kvstore::Epoch& epoch, bool has_left = false) {
  Lines lines;
  for (const auto& line : words.look(epoch, [&](const kvstore::MemberId&) { return has_left; }))
    lines.push_back(line.text);
  return lines;
}

}  // namespace

TEST_CASE("a worker that ends by itself has left and one that was lost is left out") {
  EpochWords words;
  CHECK(look(words, epoch_of(1, {w1, w2})) ==
        Lines{"epoch 1: server 's1' is up", "epoch 1: worker 'w1' takes part from step 0 on",
              "epoch 1: worker 'w2' takes part from step 0 on"});
  CHECK(look(words, epoch_of(1, {w1, w2})).empty());
  SUBCASE("after a step") {
    CHECK(look(words, epoch_of(2, {w1}, {"w2"})) == Lines{"epoch 2: worker 'w2' has left"});
  }
  SUBCASE("without a step") {
    CHECK(look(words, epoch_of(2, {w1}), true) == Lines{"epoch 2: worker 'w2' has left"});
  }
  SUBCASE("lost") {
    CHECK(look(words, epoch_of(2, {w1})) == Lines{"epoch 2: worker 'w2' is left out"});
  }
}

TEST_CASE("a worker of a new process is told as one that was left out and one that takes part") {
  const kvstore::WorkerEntry again{{"w2", 9}, 4};
  EpochWords words;
  look(words, epoch_of(1, {w1, w2}));
  CHECK(
      look(words, epoch_of(2, {w1, again})) ==
      Lines{"epoch 2: worker 'w2' is left out", "epoch 2: worker 'w2' takes part from step 4 on"});
}

TEST_CASE("a worker at its end is done, then has left, and a later process of it is told") {
  EpochWords words;
  look(words, epoch_of(1, {w1, w2}));
  kvstore::Epoch epoch = epoch_of(2, {w1}, {"w2"});
  epoch.at_end = {w2.id};
  CHECK(look(words, epoch) == Lines{"epoch 2: worker 'w2' is done, and waits for the others"});
  CHECK(look(words, epoch_of(3, {w1}, {"w2"})) == Lines{"epoch 3: worker 'w2' has left"});
  const kvstore::WorkerEntry again{{"w2", 9}, 9};
  CHECK(look(words, epoch_of(4, {w1, again}, {"w2"})) ==
        Lines{"epoch 4: worker 'w2' takes part from step 9 on"});
}

TEST_CASE("the loss of a server and of a worker are events of their own kinds") {
  EpochWords words;
  look(words, epoch_of(1, {w1, w2}));
  kvstore::Epoch epoch = epoch_of(2, {w1});
  epoch.servers[0].state = kvstore::ServerState::down;
  const auto lines = words.look(epoch, [](const kvstore::MemberId&) { return false; });
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].event == EventKind::failed_over);
  CHECK(lines[1].event == EventKind::left_out);
}
