#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

constexpr const char* title = "# dpwa protocol version 1: ";

// The frames in golden.hex, by name: a line that begins with `title` and goes on with the name,
// then two hexadecimal digits for each byte. Throws when the file is missing or has anything else.
std::map<std::string, std::vector<std::byte>> read_golden() {
  std::ifstream file(DPWA_GOLDEN_FILE);
  if (!file) throw std::runtime_error("no golden file " DPWA_GOLDEN_FILE);
  std::map<std::string, std::vector<std::byte>> frames;
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(title)) {
      name = line.substr(std::string_view(title).size());
      name.resize(std::min(name.find(','), name.size()));
      if (!frames.try_emplace(name).second) throw std::runtime_error(name + ": twice");
      continue;
    }
    std::istringstream digits(line);
    for (std::string pair; digits >> pair;) {
      std::size_t used = 0;
      const unsigned long value = std::stoul(pair, &used, 16);
      if (pair.size() != 2 || used != 2) throw std::runtime_error(name + ": bad byte " + pair);
      frames.at(name).push_back(static_cast<std::byte>(value));
    }
  }
  return frames;
}

// With DPWA_UPDATE_GOLDEN=1 in the environment, the test writes the golden file instead of
// comparing with it. That is for a deliberate change of the protocol, which needs a new protocol
// version once it is released.
bool update_golden() {
  const char* value = std::getenv("DPWA_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

// In the order of the names.
void write_golden() {
  std::map<std::string, std::vector<std::byte>> frames;
  for (const Sample& sample : samples()) frames[sample.name] = sample.frame;
  std::ofstream file(DPWA_GOLDEN_FILE);
  for (const auto& [name, frame] : frames) {
    file << title << name << ", " << std::dec << frame.size() << " bytes\n" << std::hex;
    for (std::size_t i = 0; i < frame.size(); ++i) {
      file << std::setw(2) << std::setfill('0') << std::to_integer<int>(frame[i]);
      file << (i % 16 == 15 || i + 1 == frame.size() ? '\n' : ' ');
    }
  }
  if (!file.flush()) throw std::runtime_error("cannot write " DPWA_GOLDEN_FILE);
}

TEST_CASE("every message is encoded to the bytes of its golden file, and decoded from them") {
  if (update_golden()) write_golden();
  const auto frames = read_golden();
  CHECK(frames.size() == samples().size());
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    REQUIRE(frames.contains(sample.name));
    const std::vector<std::byte>& golden = frames.at(sample.name);
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
