#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dpwa::train {

// The checkpoint files of one node in a directory: NODE.STEP.ckpt, the two latest kept. A file
// appears whole or not at all; checkpoint_file.h gives its layout. One owner, one thread.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  CheckpointStore(std::filesystem::path directory, std::string node, Warn warn);

  // Creates the directory when it is not there. Throws std::system_error; older files are then
  // untouched.
  void save(std::uint64_t step, std::string_view body);

  struct Loaded {
    std::filesystem::path file;
    std::string body;
  };
  // The latest whole checkpoint; none when there is no file at all. A damaged one is named in a
  // warning, renamed to *.damaged, and the one before it is taken. Throws UsageError when all are
  // damaged.
  std::optional<Loaded> load_latest();

  bool empty() const;

  // Removes what a killed process of this node left half written. To be called when no other
  // process can have the node's name: it may be writing one.
  void remove_unfinished();

 private:
  struct File {
    std::uint64_t step;
    std::filesystem::path path;
  };
  std::vector<File> files(std::string_view ending) const;  // NODE.STEP with it, latest first

  std::filesystem::path directory_;
  std::string node_;
  Warn warn_;
};

}  // namespace dpwa::train
