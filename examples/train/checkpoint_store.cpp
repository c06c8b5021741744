#include "examples/train/checkpoint_store.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

#include "dpwa/base/numbers.h"
#include "dpwa/config/config.h"
#include "examples/train/checkpoint_file.h"
#include "examples/train/files.h"

namespace dpwa::train {
namespace {

constexpr std::string_view whole_ending = ".ckpt";
constexpr std::string_view damaged_ending = ".ckpt.damaged";
constexpr std::string_view unfinished_ending = ".ckpt.tmp";  // write_file_atomically
constexpr std::size_t kept_files = 2;

}  // namespace

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

bool CheckpointStore::empty() const {
  return readable_files().empty();
}

std::vector<std::string> CheckpointStore::other_nodes() const {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!file.ends_with(whole_ending)) continue;
    const std::string stem = file.substr(0, file.size() - whole_ending.size());
    const auto dot = stem.rfind('.');  // a name may have some as well
    if (dot == 0 || dot == std::string::npos || !number_in<std::uint64_t>(stem.substr(dot + 1)))
      continue;
    if (const std::string name = stem.substr(0, dot); name != node_) names.insert(name);
  }
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
  std::vector<File> found;
  const std::string prefix = node_ + ".";
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() <= prefix.size() + ending.size() || !name.starts_with(prefix) ||
        !name.ends_with(ending))
      continue;
    const auto step = number_in<std::uint64_t>(
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - ending.size()));
    if (step) found.push_back({*step, entry->path()});
  }
  std::sort(found.begin(), found.end(),
            [](const File& left, const File& right) { return left.step > right.step; });
  return found;
}

}  // namespace dpwa::train
