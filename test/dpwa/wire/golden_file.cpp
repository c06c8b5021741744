#include "test/dpwa/wire/golden_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace dpwa::wire {
namespace {

std::filesystem::path path_of(const std::string& name) {
  return std::filesystem::path(DPWA_GOLDEN_DIR) / (name + ".hex");
}

}  // namespace

std::vector<std::byte> read_golden(const std::string& name) {
  std::ifstream file(path_of(name));
  if (!file) throw std::runtime_error("no golden file " + path_of(name).string());
  std::vector<std::byte> frame;
  for (std::string line; std::getline(file, line);) {
    std::istringstream digits(line.substr(0, line.find('#')));
    for (std::string pair; digits >> pair;) {
      std::size_t used = 0;
      const unsigned long value = std::stoul(pair, &used, 16);
      if (pair.size() != 2 || used != 2) throw std::runtime_error(name + ": bad byte " + pair);
      frame.push_back(static_cast<std::byte>(value));
    }
  }
  return frame;
}

bool update_golden() {
  const char* value = std::getenv("DPWA_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

void write_golden(const std::string& name, std::span<const std::byte> frame) {
  std::ofstream file(path_of(name));
  file << "# dpwa protocol version 1: " << name << ", " << frame.size() << " bytes\n" << std::hex;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    file << std::setw(2) << std::setfill('0') << std::to_integer<int>(frame[i]);
    file << (i % 16 == 15 || i + 1 == frame.size() ? '\n' : ' ');
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path_of(name).string());
}

}  // namespace dpwa::wire
