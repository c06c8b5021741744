#include "dpwa/kvstore/worker_changes.h"

#include <doctest/doctest.h>

namespace dpwa::kvstore {
namespace {

using Kind = WorkerChange::Kind;
using Changes = std::vector<WorkerChange>;

const WorkerEntry w1{{"w1", 7}, 0};
const WorkerEntry w2{{"w2", 8}, 30};

Epoch with_workers(std::vector<WorkerEntry> workers, std::vector<std::string> left = {}) {
  Epoch epoch;
  epoch.workers = std::move(workers);
  epoch.left = std::move(left);
  return epoch;
}

Changes look(WorkerChanges& changes, const Epoch& epoch, Kind unknown = Kind::lost) {
  return changes.look(epoch, [&](const WorkerEntry&) { return unknown; });
}

}  // namespace

TEST_CASE("workers come, leave and are lost once each") {
  WorkerChanges changes;
  CHECK(look(changes, with_workers({w1, w2})) == Changes{{Kind::came, w1}, {Kind::came, w2}});
  CHECK(look(changes, with_workers({w1, w2})).empty());
  CHECK(look(changes, with_workers({w1}, {"w2"})) == Changes{{Kind::left, w2}});
  CHECK(look(changes, with_workers({}, {"w2"})) == Changes{{Kind::lost, w1}});
}

TEST_CASE("a worker that comes again for the final weights alone is not told twice") {
  Kind kind = Kind::left;
  std::vector<std::string> left;
  SUBCASE("after steps") {
    left = {"w2"};
  }
  SUBCASE("without a step") {
    kind = Kind::no_step;
  }
  WorkerChanges changes;
  look(changes, with_workers({w1, w2}));
  CHECK(look(changes, with_workers({w1}, left), kind) == Changes{{kind, w2}});
  CHECK(look(changes, with_workers({w1, w2}, left), kind).empty());
  CHECK(look(changes, with_workers({w1}, left), kind).empty());
  SUBCASE("unless it is lost") {
    look(changes, with_workers({w1, w2}, left), kind);
    CHECK(look(changes, with_workers({w1})) == Changes{{Kind::lost, w2}});
    CHECK(look(changes, with_workers({w1, w2})) == Changes{{Kind::came, w2}});
  }
  SUBCASE("a later process of it is another one") {
    const WorkerEntry again{{"w2", 9}, 30};
    CHECK(look(changes, with_workers({w1, again}, left)) == Changes{{Kind::came, again}});
    CHECK(look(changes, with_workers({w1}, left), kind) == Changes{{kind, again}});
  }
}

}  // namespace dpwa::kvstore
