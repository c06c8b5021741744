#include "dpwa/kvstore/snapshot_retention.h"

#include <doctest/doctest.h>

namespace dpwa::kvstore {
namespace {

using Ids = std::set<SnapshotId>;

TEST_CASE("the newest complete snapshots stay, of earlier runs too") {
  const SnapshotRetention retention{2};
  CHECK(retention.kept({{7, 1}}, {7, 1}) == Ids{{7, 1}});
  CHECK(retention.kept({{7, 1}, {7, 2}, {7, 3}}, {7, 3}) == Ids{{7, 2}, {7, 3}});
  CHECK(retention.kept({{7, 1}, {7, 2}, {8, 3}}, {8, 3}) == Ids{{7, 2}, {8, 3}});
  CHECK(SnapshotRetention{1}.kept({{7, 1}, {7, 2}}, {7, 2}) == Ids{{7, 2}});
}

TEST_CASE("a snapshot that another server lacks takes the place of none that all have") {
  // The other server's 9 was damaged: all started from 8.
  const SnapshotRetention retention{2, Ids{{5, 7}, {5, 8}}};
  CHECK(retention.kept({{5, 7}, {5, 8}, {5, 9}, {6, 9}}, {6, 9}) == Ids{{5, 8}, {6, 9}});
  CHECK(retention.kept({{5, 8}, {6, 9}, {6, 10}}, {6, 10}) == Ids{{6, 9}, {6, 10}});
}

TEST_CASE("a part that was only ready stays when all servers have the snapshot") {
  CHECK(SnapshotRetention{2, Ids{{5, 8}}}.kept({{6, 9}}, {6, 9}) == Ids{{5, 8}, {6, 9}});
}

TEST_CASE("a snapshot after the one that is complete is not counted") {
  CHECK(SnapshotRetention{2}.kept({{7, 1}, {7, 2}, {7, 4}}, {7, 2}) == Ids{{7, 1}, {7, 2}});
}

TEST_CASE("of the parts of a run that never become complete the last two stay") {
  const SnapshotRetention retention{2};
  CHECK(retention.gives_up({7, 3}, {7, 5}));
  CHECK_FALSE(retention.gives_up({7, 4}, {7, 5}));
  CHECK_FALSE(retention.gives_up({7, 5}, {7, 5}));
  CHECK_FALSE(retention.gives_up({6, 1}, {7, 5}));  // others may have it
}

TEST_CASE("parts of earlier runs that other servers lacked go with the next part") {
  const SnapshotRetention retention{2, Ids{{5, 2}}};
  CHECK(retention.gives_up({5, 1}, {7, 3}));
  CHECK_FALSE(retention.gives_up({5, 2}, {7, 3}));
  CHECK(retention.gives_up({6, 2}, {7, 3}));
  CHECK_FALSE(retention.gives_up({8, 1}, {7, 3}));
}

}  // namespace
}  // namespace dpwa::kvstore
