#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/kvserver/snapshot_file.h"
#include "dpwa/kvstore/snapshot_retention.h"

namespace dpwa::kvserver {

// The snapshots of one server in a folder, which several servers may share. The names of its files:
//
//   SERVER.RUN.NUMBER.snapshot        all servers have their part of it
//   SERVER.RUN.NUMBER.snapshot.ready  this server has its part
//   SERVER.RUN.NUMBER.snapshot.tmp    is being written, or was when the process ended
//   *.damaged                         one of the first two that is not sound, set aside
//
// Files have mode 0600. A file gets one of the first two names only after all of it is on the disk.
// Calls block. Used by one thread at a time.
class SnapshotFolder {
 public:
  // `own`: the fields that the heads of all files have in common.
  SnapshotFolder(std::filesystem::path folder, SnapshotHead own);

  // Why the folder cannot be used: it cannot be made or written to. A full disk is no reason.
  std::optional<std::string> problem() const;

  struct Contents {
    std::vector<kvstore::SnapshotId> held;  // valid ones, complete or ready
    bool had_complete = false;              // counts a damaged one too
    std::vector<std::string> damaged;       // a line each, which names the file
    std::string refusal;  // a line: the file of another cluster, type or version; empty: none
  };
  // Reads all files, sets damaged ones aside and removes unfinished ones. Ends early once `stop` is
  // set; the result is then of no use.
  Contents look(const std::atomic<bool>& stop);

  // Writes this server's part, as a file that is ready. Returns one line about what went wrong; the
  // file is then removed. Ends early once `stop` is set. Removes those parts that are only ready
  // and that `retention` gives up.
  std::optional<std::string> write(const SnapshotHead& head, const Part& part,
                                   const std::atomic<bool>& stop,
                                   const kvstore::SnapshotRetention& retention);
  // Gives the file the name that says that all servers have their part. Then removes older
  // snapshots that `retention` does not keep, and all damaged files but the newest.
  std::optional<std::string> complete(const kvstore::SnapshotId& id,
                                      const kvstore::SnapshotRetention& retention);

  struct Loaded {
    SnapshotHead head;
    Part part;
  };
  // The error is one line that names the file.
  SnapshotResult<Loaded> load(const kvstore::SnapshotId& id) const;

 private:
  struct File {
    kvstore::SnapshotId id;
    std::filesystem::path path;
  };
  std::string name_of(const kvstore::SnapshotId& id, std::string_view ending) const;
  std::vector<File> files(std::string_view ending) const;  // oldest first
  void remove_damaged(const kvstore::SnapshotId& before);

  const std::filesystem::path folder_;
  const SnapshotHead own_;
};

}  // namespace dpwa::kvserver
