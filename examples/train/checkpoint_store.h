#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dpwa::train {

// A checkpoint file. Layout, little-endian:
//    0  8  "DPWACKPT"
//    8  4  version, 1
//   12  4  CRC32C of the body
//   16  8  bytes of the body
//   24     body: u64 bytes of the run state, the run state as JSON {identity, position, adapter}
//          (run_state.h), and to the end a LibTorch archive: "model", parameters and buffers by
//          name; "optimizer", its state; "generator", that of the random numbers
std::string checkpoint_header(std::string_view body);

// The file is certainly not a whole checkpoint; the text states the damage.
class DamagedCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The body of a whole file. Throws DamagedCheckpoint.
std::string checkpoint_body(std::string file);

struct CheckpointParts {
  std::string_view state;    // JSON
  std::string_view archive;  // of LibTorch
};
// Views into `body`. Throws DamagedCheckpoint when it is too short.
CheckpointParts split_checkpoint(std::string_view body);
// A body as far as the archive.
std::string begin_checkpoint(std::string_view state);

// The checkpoint files of one node in a directory: NODE.STEP.ckpt, the two latest kept. A file
// appears whole or not at all. One owner, one thread.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  CheckpointStore(std::filesystem::path directory, std::string node, Warn warn);

  // For the start of a run: makes the directory if it does not exist (`resume`: it must exist), and
  // for a moment a file in it. Throws ConfigError when either fails, but not for a full disk, and
  // when there are checkpoints of this node that the run does not resume from.
  void require_directory(bool resume) const;

  // Creates the directory if it does not exist. Throws std::system_error; older files then stay as
  // they are. Only the owner can read the file (mode 0600).
  void save(std::uint64_t step, std::string_view body);

  struct Loaded {
    std::filesystem::path file;
    std::string body;
  };
  // The latest whole checkpoint; none when there is no file. A damaged file is named in a warning
  // and renamed to *.damaged where that is allowed; the file before it is taken. Throws ConfigError
  // when all are damaged, and when the latest or the directory cannot be read: with an older
  // checkpoint, later training would be lost silently.
  std::optional<Loaded> load_latest();

  // The file stays as *.kept, whatever is saved later; a warning where that is not possible.
  void keep(const std::filesystem::path& file) const;

  // Names of other nodes that have checkpoints there, in order; none when it cannot be read.
  std::vector<std::string> other_nodes() const;

  // Removes files that a killed process of this node left half written. Call it only when no other
  // process can run under the node's name, because that process may be writing one.
  void remove_unfinished();

 private:
  struct File {
    std::string node;
    std::uint64_t step;
    std::filesystem::path path;
  };
  // Files NODE.STEP of all nodes with this ending, and those of this one, latest first; after an
  // error: the files found before it.
  std::vector<File> all_files(std::string_view ending, std::error_code& error) const;
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
