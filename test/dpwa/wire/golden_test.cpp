#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

std::filesystem::path path_of(const std::string& name) {
  return std::filesystem::path(DPWA_GOLDEN_DIR) / (name + ".hex");
}

// The frame in golden/NAME.hex: two hexadecimal digits for each byte, and comments that begin with
// '#'. Throws when the file is missing or has anything else.
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

// With DPWA_UPDATE_GOLDEN=1 in the environment, the test writes the golden files instead of
// comparing them. That is for a deliberate change of the protocol, which needs a new protocol
// version once it is released.
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

TEST_CASE("every message is encoded to the bytes of its golden file, and decoded from them") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    if (update_golden()) write_golden(sample.name, sample.frame);
    const std::vector<std::byte> golden = read_golden(sample.name);
    CHECK(sample.frame == golden);
    const auto again = transcode(golden);
    REQUIRE(again.has_value());
    CHECK(*again == golden);
  }
}

TEST_CASE("the golden files cover every message type") {
  for (unsigned type = 0; type < 256; ++type) {
    if (!is_message_type(type)) continue;
    CAPTURE(type);
    const auto all = samples();
    CHECK(std::any_of(all.begin(), all.end(), [&](const Sample& sample) {
      return header_of(sample.frame).type == static_cast<MessageType>(type);
    }));
  }
}

}  // namespace
}  // namespace dpwa::wire
