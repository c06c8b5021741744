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

TEST_CASE("a worker that comes again, and a later process of it, are told") {
  WorkerChanges changes;
  look(changes, with_workers({w1, w2}));
  CHECK(look(changes, with_workers({w1}), Kind::no_step) == Changes{{Kind::no_step, w2}});
  CHECK(look(changes, with_workers({w1, w2})) == Changes{{Kind::came, w2}});
  const WorkerEntry again{{"w2", 9}, 30};
  CHECK(look(changes, with_workers({w1, again})) == Changes{{Kind::lost, w2}, {Kind::came, again}});
  CHECK(look(changes, with_workers({w1}, {"w2"})) == Changes{{Kind::left, again}});
}

TEST_CASE("a worker at its end no longer trains") {
  WorkerChanges changes;
  look(changes, with_workers({w1, w2}));
  Epoch epoch = with_workers({w1}, {"w2"});
  epoch.at_end = {w2.id};
  CHECK(look(changes, epoch) == Changes{{Kind::done, w2}});
  CHECK(look(changes, epoch).empty());
  epoch.at_end.clear();
  SUBCASE("leaves with the final values") {
    CHECK(look(changes, epoch) == Changes{{Kind::left, {w2.id, 0}}});
  }
  SUBCASE("is lost") {
    epoch.left.clear();
    CHECK(look(changes, epoch) == Changes{{Kind::lost, {w2.id, 0}}});
  }
}

}  // namespace dpwa::kvstore
