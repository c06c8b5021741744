#include <doctest/doctest.h>

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
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
#include "test/support/sanitized.h"

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

TEST_CASE("every message keeps the request id of its frame") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    FrameHeader header = header_of(sample.frame);
    header.request_id += 41;
    std::vector<std::byte> frame = sample.frame;
    std::ranges::copy(encode_header(header), frame.begin());
    const auto again = transcode(frame);
    REQUIRE(again.has_value());
    CHECK(*again == frame);
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

namespace dpwa::wire {
namespace {

// The large payload of one sample adds bytes, not cases.
std::vector<Sample> small_samples() {
  auto all = samples();
  std::erase_if(all, [](const Sample& sample) { return sample.frame.size() > 2000; });
  return all;
}

TEST_CASE("every corruption of a single byte is refused") {
  for (const Sample& sample : small_samples()) {
    CAPTURE(sample.name);
    auto frame = sample.frame;
    REQUIRE(transcode(frame).has_value());
    for (std::size_t at = 0; at < frame.size(); ++at) {
      const std::byte right = frame[at];
      for (int flip = 1; flip < 256; flip += test::sanitized ? 7 : 1) {
        frame[at] = right ^ std::byte(flip);
        if (transcode(frame)) FAIL("byte " << at << " flipped by " << flip << " is accepted");
      }
      frame[at] = right;
    }
  }
}

TEST_CASE("a flipped bit anywhere in the chunks of a snapshot is refused") {
  for (const Sample& sample : samples()) {
    if (header_of(sample.frame).type != MessageType::snapshot) continue;
    auto frame = sample.frame;
    for (std::size_t at = 0; at < frame.size(); ++at) {
      frame[at] ^= std::byte(1 << (at % 8));
      if (transcode(frame)) FAIL("byte " << at << " is accepted");
      frame[at] ^= std::byte(1 << (at % 8));
    }
  }
}

TEST_CASE("every truncation of a body is refused, with a wrong checksum and with a right one") {
  for (const Sample& sample : small_samples()) {
    CAPTURE(sample.name);
    const MessageType type = header_of(sample.frame).type;
    const auto body = body_of(sample.frame);
    for (std::size_t size = 0; size < body.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(transcode(type, 1, body.first(size)).has_value());
      if (size + 4 < body.size())
        CHECK_FALSE(transcode(type, 1, sealed(body.first(size))).has_value());
    }
  }
}

TEST_CASE("bytes after the end of a message are refused although the checksum is right") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const MessageType type = header_of(sample.frame).type;
    const auto body = body_of(sample.frame);
    std::vector<std::byte> longer(body.begin(), body.end() - 4);
    longer.push_back(std::byte{0});
    CHECK_FALSE(transcode(type, 1, sealed(longer)).has_value());
  }
}

// Contents are random, or a sample with a few bytes changed; half of them bear a right checksum, so
// that the decoders behind it are reached.
TEST_CASE("garbage does no harm, and whatever is accepted is encoded to the same bytes") {
  boost::random::mt19937_64 random(20240607);
  const auto below = [&](std::size_t bound) {
    return boost::random::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  const auto all = small_samples();
  int accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    const Sample& sample = all[below(all.size())];
    const MessageType type = header_of(sample.frame).type;
    std::vector<std::byte> content;
    if (below(2) == 0) {
      content.resize(below(300));
      for (std::byte& byte : content) byte = std::byte(below(256));
    } else {
      const auto body = body_of(sample.frame);
      content.assign(body.begin(), body.end() - 4);
      if (content.empty()) content.resize(below(8));
      for (std::size_t change = below(4); change > 0 && !content.empty(); --change) {
        content[below(content.size())] = std::byte(below(256));
      }
    }
    const auto body = below(2) == 0 ? content : sealed(content);
    const auto again = transcode(type, 5, body);
    if (!again) {
      if (again.error().detail.empty()) FAIL("a fault without a detail");
      continue;
    }
    ++accepted;
    if (!std::equal(body.begin(), body.end(), body_of(*again).begin(), body_of(*again).end())) {
      FAIL("a body of type " << int(type) << " is accepted that no encoder writes");
    }
  }
  CHECK(accepted > 1000);  // the decoders behind the checksum were reached
}

TEST_CASE("random headers do no harm") {
  boost::random::mt19937_64 random(7);
  const auto valid = encode_header({MessageType::hello, 1, 100});
  for (int round = 0; round < 100'000; ++round) {
    std::array<std::byte, header_bytes> header = valid;
    // After the magic, so that the later checks are reached.
    for (std::size_t at = round % 2 == 0 ? 0 : 5; at < header.size(); ++at) {
      header[at] = std::byte(random() & 0xFF);
    }
    if (decode_header(header, 1 << 20)) FAIL("a random header is accepted");
  }
}

}  // namespace
}  // namespace dpwa::wire
