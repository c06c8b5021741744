#include "examples/train/checkpoint_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/endian/arithmetic.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <span>
#include <system_error>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/checksum.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/numbers.h"
#include "dpwa/config/config.h"
#include "examples/train/files.h"

namespace dpwa::train {
namespace {

using boost::endian::little_uint32_t;
using boost::endian::little_uint64_t;

constexpr std::array<char, 8> magic = {'D', 'P', 'W', 'A', 'C', 'K', 'P', 'T'};
constexpr std::uint32_t version = 1;

struct Header {
  std::array<char, 8> magic;
  little_uint32_t version;
  little_uint32_t checksum;
  little_uint64_t body_bytes;
};
static_assert(sizeof(Header) == 24);

constexpr std::string_view whole_ending = ".ckpt";
constexpr std::string_view damaged_ending = ".ckpt.damaged";
constexpr std::string_view unfinished_ending = ".ckpt.tmp";  // write_file_atomically
constexpr std::size_t kept_files = 2;

std::uint32_t checksum(std::string_view body) {
  return crc32c(std::as_bytes(std::span(body)));
}

// `begin`: the first 24 bytes of the file, or all. Throws DamagedCheckpoint.
Header header_of(std::string_view begin, std::uint64_t file_bytes) {
  Header header;
  if (begin.size() < sizeof header) throw DamagedCheckpoint("it is cut off");
  std::memcpy(&header, begin.data(), sizeof header);
  if (header.magic != magic) throw DamagedCheckpoint("it is not a checkpoint");
  if (header.version != version)
    throw DamagedCheckpoint("it has format version " + std::to_string(header.version.value()) +
                            "; accepted: 1");
  if (header.body_bytes != file_bytes - sizeof header)
    throw DamagedCheckpoint("its size is not the one in its header");
  return header;
}

// The body of the checkpoint file at `path`. Throws DamagedCheckpoint when it is certainly not a
// whole checkpoint: not a regular file, or wrong bytes; the header is checked before memory for the
// rest is taken. Throws ConfigError that names the file when it cannot be opened or read, because
// it may be intact, and std::runtime_error that names it when there is not enough memory.
std::string read_checkpoint(const std::filesystem::path& path) {
  const auto require = [&path](bool done) {
    if (done) return;
    throw ConfigError("--resume: checkpoint " + path.string() + " cannot be read: " +
                      std::strerror(errno) + "; accepted: one that can, or another directory");
  };
  // O_NONBLOCK: do not wait for a writer when the path is a pipe.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  require(file.valid() && ::fstat(file.get(), &status) == 0);
  if (!S_ISREG(status.st_mode)) throw DamagedCheckpoint("it is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string text;
  const auto read_to = [&](std::size_t most) {
    const std::size_t from = text.size();
    text.resize(most);
    const auto got = read_all(file.get(), std::as_writable_bytes(std::span(text)).subspan(from));
    require(got.has_value());
    text.resize(from + *got);
  };
  read_to(std::min(size, sizeof(Header)));
  header_of(text, size);
  try {
    read_to(size);
    return checkpoint_body(std::move(text));
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("checkpoint " + path.string() + ": no memory for its " +
                             std::to_string(size) + " bytes");
  }
}

}  // namespace

std::string checkpoint_header(std::string_view body) {
  const Header header{magic, version, checksum(body), body.size()};
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::string checkpoint_body(std::string file) {
  const Header header = header_of(file, file.size());
  file.erase(0, sizeof header);
  if (checksum(file) != header.checksum) throw DamagedCheckpoint("its checksum does not match");
  return file;
}

CheckpointParts split_checkpoint(std::string_view body) {
  little_uint64_t state_bytes;
  if (body.size() < sizeof state_bytes) throw DamagedCheckpoint("it is too short");
  std::memcpy(&state_bytes, body.data(), sizeof state_bytes);
  body.remove_prefix(sizeof state_bytes);
  if (state_bytes > body.size()) throw DamagedCheckpoint("it is too short");
  return {body.substr(0, state_bytes), body.substr(state_bytes)};
}

std::string begin_checkpoint(std::string_view state) {
  const little_uint64_t bytes(state.size());
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(state);
}

CheckpointStore::CheckpointStore(std::filesystem::path directory, std::string node, Warn warn)
    : directory_(std::move(directory)), node_(std::move(node)), warn_(std::move(warn)) {}

void CheckpointStore::require_directory(bool resume) const {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(
        "--checkpoint: '" + directory_.string() + "' " + why +
        "; accepted: a directory that can be written, or a path where one can be made");
  };
  std::error_code error;
  const auto status = std::filesystem::status(directory_, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    if (resume)
      throw ConfigError(
          "--resume: '" + directory_.string() +
          "' does not exist; accepted: the directory of the checkpoints (an empty one "
          "starts from the beginning)");
    std::filesystem::create_directories(directory_, error);
    if (error) refuse("cannot be made: " + error.message());
  } else if (!std::filesystem::is_directory(status)) {
    refuse(error ? "cannot be read: " + error.message() : "is not a directory");
  }
  try {
    const auto probe = directory_ / (node_ + ".start");
    write_file_atomically(probe, {}, private_mode);
    std::filesystem::remove(probe, error);
  } catch (const std::system_error& fault) {
    const auto& code = fault.code();
    if (code != std::errc::no_space_on_device && code.value() != EDQUOT)
      refuse("cannot be written: " + code.message());
  }
  if (!resume && !readable_files().empty())
    throw ConfigError("--checkpoint: '" + directory_.string() + "' holds checkpoints of " + node_ +
                      "; accepted: with --resume, or another directory");
}

void CheckpointStore::save(std::uint64_t step, std::string_view body) {
  std::filesystem::create_directories(directory_);
  const std::string header = checkpoint_header(body);
  write_file_atomically(
      directory_ / (node_ + "." + std::to_string(step) + std::string(whole_ending)), {header, body},
      private_mode);
  prune(step);
}

void CheckpointStore::prune(std::uint64_t saved) const {
  std::error_code ignored;  // a file too many does no harm
  std::size_t kept = 0;
  for (const File& file : files(whole_ending, ignored))
    if (file.step <= saved && ++kept > kept_files) std::filesystem::remove(file.path, ignored);
}

std::optional<CheckpointStore::Loaded> CheckpointStore::load_latest() {
  const auto present = readable_files();
  for (const File& file : present) {
    try {
      return Loaded{file.path, read_checkpoint(file.path)};
    } catch (const DamagedCheckpoint& damage) {
      set_aside(file.path, damage.what());
    }
  }
  std::error_code ignored;  // as of the whole ones above
  if (!present.empty() || !files(damaged_ending, ignored).empty())
    throw ConfigError("--resume: every checkpoint of " + node_ + " in '" + directory_.string() +
                      "' is damaged; accepted: a sound one, or none (without the *.damaged files) "
                      "to start from the beginning");
  return std::nullopt;
}

void CheckpointStore::set_aside(const std::filesystem::path& file, const std::string& why) const {
  std::error_code error;
  std::filesystem::rename(file, file.string() + ".damaged", error);
  warn_("checkpoint " + file.string() + " is damaged: " + why +
        (error ? "; it stays there because it cannot be renamed: " + error.message()
               : "; set aside as *.damaged"));
}

void CheckpointStore::keep(const std::filesystem::path& file) const {
  const std::filesystem::path kept = file.string() + ".kept";
  std::error_code error;
  std::filesystem::create_hard_link(file, kept, error);
  const bool stays = !error || error == std::errc::file_exists;
  warn_("the weights of checkpoint " + file.string() + " were given up" +
        (stays ? "; it stays as *.kept" : "; it will be removed: " + error.message()));
}

std::vector<std::string> CheckpointStore::other_nodes() const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const File& file : all_files(whole_ending, ignored))
    if (file.node != node_) names.insert(file.node);
  return {names.begin(), names.end()};
}

void CheckpointStore::remove_unfinished() {
  std::error_code ignored;  // one that stays takes room, nothing else
  for (const File& file : files(unfinished_ending, ignored))
    std::filesystem::remove(file.path, ignored);
}

std::vector<CheckpointStore::File> CheckpointStore::readable_files() const {
  std::error_code error;
  auto found = files(whole_ending, error);
  const bool none =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !none)
    throw ConfigError("--checkpoint: '" + directory_.string() + "': " + error.message());
  return found;
}

std::vector<CheckpointStore::File> CheckpointStore::files(std::string_view ending,
                                                          std::error_code& error) const {
  auto found = all_files(ending, error);
  std::erase_if(found, [this](const File& file) { return file.node != node_; });
  return found;
}

std::vector<CheckpointStore::File> CheckpointStore::all_files(std::string_view ending,
                                                              std::error_code& error) const {
  std::vector<File> found;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(ending)) continue;
    const std::string stem = name.substr(0, name.size() - ending.size());
    const auto dot = stem.rfind('.');  // a name may have some as well
    if (dot == 0 || dot == std::string::npos) continue;
    if (const auto step = number_in<std::uint64_t>(std::string_view(stem).substr(dot + 1)))
      found.push_back({stem.substr(0, dot), *step, entry->path()});
  }
  std::ranges::sort(found, std::greater<>(), &File::step);
  return found;
}

}  // namespace dpwa::train
