#include "examples/train/files.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "dpwa/base/atomic_file.h"
#include "dpwa/config/config.h"

namespace dpwa::train {
namespace {

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

std::string last_error(gzFile_s* file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : text;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path,
                           const std::vector<std::string_view>& parts, ::mode_t mode) {
  AtomicFile file(path, path.string() + ".tmp", mode);
  for (const std::string_view part : parts) file.write(part);
  file.commit();
  const std::filesystem::path folder = folder_of(path);
  if (const std::error_code error = sync_folder(folder))
    throw std::system_error(error, folder.string());
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t limit) {
  const std::string name = path.string();
  std::unique_ptr<gzFile_s, CloseGz> file(gzopen(name.c_str(), "rb"));
  if (!file) throw ConfigError(name + ": " + std::strerror(errno));
  gzbuffer(file.get(), 1 << 18);
  std::vector<std::uint8_t> content;
  constexpr std::size_t piece = 1 << 20;
  while (true) {
    const std::size_t have = content.size();
    content.resize(std::min(have + piece, limit + 1));
    const int got =
        gzread(file.get(), content.data() + have, static_cast<unsigned>(content.size() - have));
    if (got < 0) throw ConfigError(name + ": " + last_error(file.get()));
    content.resize(have + static_cast<std::size_t>(got));
    if (got == 0) break;
    if (content.size() > limit)
      throw ConfigError(name + ": holds more than " + std::to_string(limit) + " bytes");
  }
  // A gzip stream that ends early gives its bytes first and the error at the end.
  if (gzclose_r(file.release()) != Z_OK) throw ConfigError(name + ": the gzip data is cut off");
  return content;
}

}  // namespace dpwa::train
