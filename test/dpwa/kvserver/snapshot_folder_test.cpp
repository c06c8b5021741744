#include "dpwa/kvserver/snapshot_folder.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "test/dpwa/kvserver/snapshot_samples.h"
#include "test/support/temporary_directory.h"

namespace dpwa::kvserver {
namespace {

namespace fs = std::filesystem;
using kvstore::SnapshotId;
using test::sample_head;
using test::sample_part;

struct Folder {
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(path)) {
      all.insert(entry.path().filename().string());
    }
    return all;
  }
  const test::TemporaryDirectory directory;
  const fs::path path = directory.path();
};

const std::atomic<bool> go_on{false};
const kvstore::SnapshotRetention keep_two{2};

SnapshotHead head_of(const SnapshotId& id) {
  SnapshotHead head = sample_head();
  head.id = id;
  return head;
}

TEST_CASE("a part is ready once it is written, complete when it is said, and only its owner's") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  REQUIRE_FALSE(snapshots.problem());
  CHECK_FALSE(snapshots.write(head_of({7, 1}), sample_part(), go_on, keep_two));
  CHECK(folder.names() == std::set<std::string>{"s2.7.1.snapshot.ready"});
  struct stat status {};
  REQUIRE(::stat((folder.path / "s2.7.1.snapshot.ready").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  auto contents = snapshots.look(go_on);
  CHECK(contents.held == std::vector<SnapshotId>{{7, 1}});
  CHECK_FALSE(contents.had_complete);

  CHECK_FALSE(snapshots.complete({7, 1}, keep_two));
  CHECK(folder.names() == std::set<std::string>{"s2.7.1.snapshot"});
  contents = snapshots.look(go_on);
  CHECK(contents.held == std::vector<SnapshotId>{{7, 1}});
  CHECK(contents.had_complete);
  const auto loaded = snapshots.load({7, 1});
  REQUIRE(loaded.has_value());
  CHECK(loaded->head == head_of({7, 1}));
  CHECK(loaded->part.size() == sample_part().size());
}

TEST_CASE("the newest complete snapshots stay, and all that no start would use goes") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  for (const SnapshotId id : {SnapshotId{7, 1}, {7, 2}, {7, 3}, {8, 3}}) {
    REQUIRE_FALSE(snapshots.write(head_of(id), sample_part(), go_on, keep_two));
    if (id != SnapshotId{7, 3}) REQUIRE_FALSE(snapshots.complete(id, keep_two));
  }
  std::ofstream(folder.path / "s1.9.9.snapshot") << "of another server";
  CHECK(folder.names() ==
        std::set<std::string>{"s1.9.9.snapshot", "s2.7.2.snapshot", "s2.8.3.snapshot"});
}

TEST_CASE("of the damaged files the newest stays") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  std::ofstream(folder.path / "s2.5.2.snapshot.damaged") << "damaged";
  std::ofstream(folder.path / "s2.5.3.snapshot.ready.damaged") << "damaged";
  REQUIRE_FALSE(snapshots.write(head_of({6, 9}), sample_part(), go_on, keep_two));
  REQUIRE_FALSE(snapshots.complete({6, 9}, keep_two));
  CHECK(folder.names() ==
        std::set<std::string>{"s2.5.3.snapshot.ready.damaged", "s2.6.9.snapshot"});
}

TEST_CASE("parts that never become complete do not fill the disk") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  REQUIRE_FALSE(snapshots.write(head_of({7, 1}), sample_part(), go_on, keep_two));
  REQUIRE_FALSE(snapshots.complete({7, 1}, keep_two));
  for (const std::uint32_t number : {2, 3, 4, 5}) {
    REQUIRE_FALSE(snapshots.write(head_of({7, number}), sample_part(), go_on, keep_two));
  }
  CHECK(folder.names() ==
        std::set<std::string>{"s2.7.1.snapshot", "s2.7.4.snapshot.ready", "s2.7.5.snapshot.ready"});
}

TEST_CASE("a damaged file is named and set aside, and an older one is held") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  for (const SnapshotId id : {SnapshotId{7, 1}, {7, 2}}) {
    REQUIRE_FALSE(snapshots.write(head_of(id), sample_part(), go_on, keep_two));
    REQUIRE_FALSE(snapshots.complete(id, keep_two));
  }
  fs::resize_file(folder.path / "s2.7.2.snapshot", 200);
  std::ofstream(folder.path / "s2.7.3.snapshot.tmp") << "half";
  auto contents = snapshots.look(go_on);
  CHECK(contents.held == std::vector<SnapshotId>{{7, 1}});
  CHECK(contents.damaged ==
        std::vector<std::string>{"snapshot " + (folder.path / "s2.7.2.snapshot").string() +
                                 " is cut off; set aside as *.damaged"});
  CHECK(folder.names() == std::set<std::string>{"s2.7.1.snapshot", "s2.7.2.snapshot.damaged"});

  // One that all servers had is not forgotten when it was the only one.
  fs::remove(folder.path / "s2.7.1.snapshot");
  contents = snapshots.look(go_on);
  CHECK(contents.held.empty());
  CHECK(contents.had_complete);
}

TEST_CASE("the snapshot of another cluster is refused by name, and stays as it is") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  REQUIRE_FALSE(snapshots.write(head_of({7, 1}), sample_part(), go_on, keep_two));
  SnapshotHead other = sample_head();
  other.cluster = "prod";
  SnapshotFolder others(folder.path, other);
  CHECK(others.look(go_on).refusal == "snapshot " +
                                          (folder.path / "s2.7.1.snapshot.ready").string() +
                                          " is of cluster 'test', not 'prod'");
  CHECK(folder.names() == std::set<std::string>{"s2.7.1.snapshot.ready"});
}

TEST_CASE("a part that cannot be written leaves nothing, and a line with the reason") {
  const Folder folder;
  SnapshotFolder snapshots(folder.path, sample_head());
  fs::create_directory(folder.path / "s2.7.1.snapshot.tmp");
  fs::create_directory(folder.path / "s2.7.1.snapshot.tmp" / "x");
  const auto problem = snapshots.write(head_of({7, 1}), sample_part(), go_on, keep_two);
  REQUIRE(problem);
  CHECK(*problem == "snapshot " + (folder.path / "s2.7.1.snapshot.tmp").string() +
                        " was not written: Is a directory");
  const std::atomic<bool> stopped{true};
  CHECK(snapshots.write(head_of({7, 2}), sample_part(), stopped, keep_two));
  CHECK(folder.names() == std::set<std::string>{"s2.7.1.snapshot.tmp"});

  SnapshotFolder nowhere("/proc/nowhere/snapshots", sample_head());
  CHECK(nowhere.problem()->starts_with("'/proc/nowhere/snapshots' cannot be made: "));
}

}  // namespace
}  // namespace dpwa::kvserver
