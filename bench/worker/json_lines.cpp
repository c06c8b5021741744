#include "bench/worker/json_lines.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string_view>

namespace dpwa::bench {
namespace {

// False when nothing comes within `limit`.
bool readable(int descriptor, std::chrono::milliseconds limit) {
  pollfd wanted{descriptor, POLLIN, 0};
  const int timeout = limit.count() == 0 ? -1 : static_cast<int>(limit.count());
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, timeout);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

void JsonLines::send(const Json& document) {
  const std::string line = document.dump() + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const auto written = ::write(out_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw std::runtime_error("a benchmark process has ended");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::optional<Json> JsonLines::receive(std::chrono::milliseconds limit) {
  std::array<char, 16384> piece;
  std::size_t searched = 0;
  while (true) {
    const auto end = buffered_.find('\n', searched);
    if (end != std::string::npos) {
      Json document = Json::parse(std::string_view(buffered_).substr(0, end));
      buffered_.erase(0, end + 1);
      return document;
    }
    searched = buffered_.size();
    if (!readable(in_, limit)) throw std::runtime_error("a benchmark process does not answer");
    const auto count = ::read(in_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    buffered_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace dpwa::bench
