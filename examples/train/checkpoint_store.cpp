#include "examples/train/checkpoint_store.h"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>

#include "dpwa/wire/checksum.h"
#include "examples/train/atomic_file.h"
#include "examples/train/choices.h"
#include "examples/train/errors.h"

namespace dpwa::train {
namespace {

namespace endian = boost::endian;

constexpr std::string_view magic = "DPWACKPT";
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 24;
constexpr std::string_view ending = ".ckpt";
constexpr std::size_t kept_files = 2;

std::uint32_t checksum(std::string_view body) {
  return wire::crc32c(std::as_bytes(std::span(body.data(), body.size())));
}

std::array<char, header_bytes> make_header(std::string_view body) {
  std::array<char, header_bytes> header{};
  auto* at = reinterpret_cast<unsigned char*>(header.data());
  std::memcpy(at, magic.data(), magic.size());
  endian::store_little_u32(at + 8, version);
  endian::store_little_u32(at + 12, checksum(body));
  endian::store_little_u64(at + 16, body.size());
  return header;
}

// The body of a whole file; throws std::runtime_error saying what is wrong with it.
std::string read_body(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("it cannot be read");
  std::array<char, header_bytes> header{};
  if (!file.read(header.data(), header_bytes)) throw std::runtime_error("it is cut off");
  const auto* at = reinterpret_cast<const unsigned char*>(header.data());
  if (std::string_view(header.data(), magic.size()) != magic)
    throw std::runtime_error("it is not a checkpoint");
  if (endian::load_little_u32(at + 8) != version)
    throw std::runtime_error("it has format version " +
                             std::to_string(endian::load_little_u32(at + 8)) + "; accepted: 1");
  const std::uint64_t bytes = endian::load_little_u64(at + 16);
  if (bytes != std::filesystem::file_size(path) - header_bytes)
    throw std::runtime_error("its size is not the one in its header");
  std::string body(bytes, '\0');
  if (!file.read(body.data(), static_cast<std::streamsize>(bytes)))
    throw std::runtime_error("it cannot be read");
  if (checksum(body) != endian::load_little_u32(at + 12))
    throw std::runtime_error("its checksum does not match");
  return body;
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path directory, std::string node, Warn warn)
    : directory_(std::move(directory)), node_(std::move(node)), warn_(std::move(warn)) {}

void CheckpointStore::save(std::uint64_t step, std::string_view body) {
  std::filesystem::create_directories(directory_);
  const auto header = make_header(body);
  write_file_atomically(directory_ / (node_ + "." + std::to_string(step) + std::string(ending)),
                        {std::string_view(header.data(), header.size()), body});
  const auto present = files();
  for (std::size_t i = kept_files; i < present.size(); ++i)
    std::filesystem::remove(present[i].path);
}

std::optional<CheckpointStore::Loaded> CheckpointStore::load_latest() {
  const auto present = files();
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

std::vector<CheckpointStore::File> CheckpointStore::files() const {
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
