#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dpwa::train {

// The checkpoint files of one node in a directory: NODE.STEP.ckpt, the two latest kept. A file
// appears whole or not at all; checkpoint_file.h gives its layout. One owner, one thread.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  CheckpointStore(std::filesystem::path directory, std::string node, Warn warn);

  // For the start of a run: makes the directory when it is not there (`resume`: refuses that) and
  // a file in it for a moment. Throws UsageError unless both can be done; a disk that is full is no
  // reason.
  void require_directory(bool resume) const;

  // Creates the directory when it is not there. Throws std::system_error; older files are then
  // untouched. The file is for its owner alone (mode 0600).
  void save(std::uint64_t step, std::string_view body);

  struct Loaded {
    std::filesystem::path file;
    std::string body;
  };
  // The latest whole checkpoint; none when there is no file at all. A damaged one is named in a
  // warning, renamed to *.damaged where that is allowed, and the one before it is taken. Throws
  // UsageError when all are damaged, and when the latest or the directory cannot be read: an older
  // one would silently lose what came after.
  std::optional<Loaded> load_latest();

  bool empty() const;  // throws UsageError when the directory cannot be read

  // Names of other nodes that have checkpoints there, in order; none when it cannot be read.
  std::vector<std::string> other_nodes() const;

  // Removes what a killed process of this node left half written. To be called when no other
  // process can have the node's name: it may be writing one.
  void remove_unfinished();

 private:
  struct File {
    std::uint64_t step;
    std::filesystem::path path;
  };
  // NODE.STEP with the ending, latest first; after an error: the files found before it.
  std::vector<File> files(std::string_view ending, std::error_code& error) const;
  std::vector<File> readable_files() const;
  void set_aside(const std::filesystem::path& file, const std::string& why) const;
  // Files of later steps are damaged ones that could not be renamed; they do not count.
  void prune(std::uint64_t saved) const;

  std::filesystem::path directory_;
  std::string node_;
  Warn warn_;
};

}  // namespace dpwa::train
