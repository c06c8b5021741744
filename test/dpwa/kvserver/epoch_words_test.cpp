#include "dpwa/kvserver/epoch_words.h"

#include <doctest/doctest.h>

using namespace dpwa;
using kvserver::words_for_change;
using Lines = std::vector<std::string>;

namespace {

kvstore::Epoch epoch_of(std::uint64_t number, std::vector<kvstore::WorkerEntry> workers,
                        std::vector<std::string> left = {}) {
  kvstore::Epoch epoch;
  epoch.number = number;
  epoch.servers = {{{"s1", 5}, kvstore::ServerState::up}};
  epoch.workers = std::move(workers);
  epoch.left = std::move(left);
  return epoch;
}

const kvstore::WorkerEntry w1{{"w1", 7}, 0};
const kvstore::WorkerEntry w2{{"w2", 8}, 0};

}  // namespace

TEST_CASE("a worker that ends by itself has left and one that was lost is left out") {
  const auto both = epoch_of(1, {w1, w2});
  CHECK(words_for_change(both, epoch_of(2, {w1}, {"w2"})) ==
        Lines{"epoch 2: worker 'w2' has left"});
  CHECK(words_for_change(both, epoch_of(2, {w1})) == Lines{"epoch 2: worker 'w2' is left out"});
}

TEST_CASE("a worker of a new process is told as one that was left out and one that takes part") {
  const kvstore::WorkerEntry again{{"w2", 9}, 4};
  CHECK(
      words_for_change(epoch_of(1, {w1, w2}), epoch_of(2, {w1, again})) ==
      Lines{"epoch 2: worker 'w2' is left out", "epoch 2: worker 'w2' takes part from step 4 on"});
}
