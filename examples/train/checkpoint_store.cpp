#include "examples/train/checkpoint_store.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "examples/train/atomic_file.h"
#include "examples/train/checkpoint_file.h"
#include "examples/train/choices.h"
#include "examples/train/errors.h"

namespace dpwa::train {
namespace {

constexpr std::string_view whole = ".ckpt";
constexpr std::string_view unfinished = ".ckpt.tmp";  // write_file_atomically
constexpr std::size_t kept_files = 2;

// The body of a whole file; throws std::runtime_error saying what is wrong with it.
std::string read_body(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("it cannot be read");
  std::string bytes(std::filesystem::file_size(path), '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw std::runtime_error("it cannot be read");
  return checkpoint_body(std::move(bytes));
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path directory, std::string node, Warn warn)
    : directory_(std::move(directory)), node_(std::move(node)), warn_(std::move(warn)) {}

void CheckpointStore::save(std::uint64_t step, std::string_view body) {
  std::filesystem::create_directories(directory_);
  const std::string header = checkpoint_header(body);
  write_file_atomically(directory_ / (node_ + "." + std::to_string(step) + std::string(whole)),
                        {header, body});
  const auto present = files(whole);
  for (std::size_t i = kept_files; i < present.size(); ++i)
    std::filesystem::remove(present[i].path);
}

std::optional<CheckpointStore::Loaded> CheckpointStore::load_latest() {
  const auto present = files(whole);
  for (const File& file : present) {
    try {
      return Loaded{file.path, read_body(file.path)};
    } catch (const std::runtime_error& error) {
      warn_("checkpoint " + file.path.string() + " is damaged: " + error.what() +
            "; set aside as *.damaged");
      std::filesystem::rename(file.path, file.path.string() + ".damaged");
    }
  }
  if (!present.empty())
    throw UsageError("--resume: every checkpoint of " + node_ + " in '" + directory_.string() +
                     "' is damaged");
  return std::nullopt;
}

bool CheckpointStore::empty() const {
  return files(whole).empty();
}

void CheckpointStore::remove_unfinished() {
  std::error_code ignored;  // one that stays takes room, nothing else
  for (const File& file : files(unfinished)) std::filesystem::remove(file.path, ignored);
}

std::vector<CheckpointStore::File> CheckpointStore::files(std::string_view ending) const {
  std::vector<File> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    const std::string prefix = node_ + ".";
    if (name.size() <= prefix.size() + ending.size() || !name.starts_with(prefix) ||
        !name.ends_with(ending))
      continue;
    const auto step = parse_whole(
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - ending.size()));
    if (step) found.push_back({*step, entry.path()});
  }
  std::sort(found.begin(), found.end(),
            [](const File& left, const File& right) { return left.step > right.step; });
  return found;
}

}  // namespace dpwa::train
