#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/kvserver/snapshot_file.h"

namespace dpwa::kvserver {

// The snapshots of one server in a folder, which several servers may share. The names of its files:
//
//   SERVER.RUN.NUMBER.snapshot        all servers have their part of it
//   SERVER.RUN.NUMBER.snapshot.ready  this server has its part
//   SERVER.RUN.NUMBER.snapshot.tmp    is being written, or was when the process ended
//   *.damaged                         one of the first two that is not sound, set aside
//
// Files have mode 0600. A file gets the first two names only after it is on the disk as a whole.
// Blocks; used by one thread at a time.
class SnapshotFolder {
 public:
  // `own`: what the heads of all files have in common.
  SnapshotFolder(std::filesystem::path folder, SnapshotHead own);

  // Why it cannot be used: it cannot be made, or not be written. A full disk is no reason.
  std::optional<std::string> problem() const;

  struct Contents {
    std::vector<kvstore::SnapshotId> held;  // sound ones, complete or ready
    bool had_complete = false;              // also a damaged one
    std::vector<std::string> damaged;       // a line each, which names the file
    std::string refusal;  // a line: the file of another cluster, type or version; empty: none
  };
  // Reads all files, sets damaged ones aside and removes unfinished ones. Ends early, with
  // anything, once `stop` is set.
  Contents look(const std::atomic<bool>& stop);

  // Writes this server's part, as a file that is ready. Returns what went wrong, in a line; no part
  // of the file is left then. Ends early once `stop` is set. Of this run, the parts before the last
  // but one that are still only ready go: where another server's disk takes nothing, they would
  // fill this one.
  std::optional<std::string> write(const SnapshotHead& head, const Part& part,
                                   const std::atomic<bool>& stop);
  // All servers have their part: that is what the file's name says from now on. Then removes those
  // before it but the newest `keep - 1` that are complete.
  std::optional<std::string> complete(const kvstore::SnapshotId& id, std::uint32_t keep);

  struct Loaded {
    SnapshotHead head;
    Part part;
  };
  // The error is a line that names the file.
  SnapshotResult<Loaded> load(const kvstore::SnapshotId& id) const;

 private:
  struct File {
    kvstore::SnapshotId id;
    std::filesystem::path path;
  };
  std::string name_of(const kvstore::SnapshotId& id, std::string_view ending) const;
  std::vector<File> files(std::string_view ending) const;  // oldest first

  const std::filesystem::path folder_;
  const SnapshotHead own_;
};

}  // namespace dpwa::kvserver
