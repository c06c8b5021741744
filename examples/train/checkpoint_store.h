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

  // Creates the directory when it is not there. Throws std::system_error; older files are then
  // untouched.
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

  // Removes what a killed process of this node left half written. To be called when no other
  // process can have the node's name: it may be writing one.
  void remove_unfinished();

 private:
  struct File {
    std::uint64_t step;
    std::filesystem::path path;
  };
  // NODE.STEP with the ending, latest first; what was found before the error.
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
