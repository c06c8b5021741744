#include <doctest/doctest.h>

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>

#include "test/dpwa/wire/samples.h"

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
      for (int flip = 1; flip < 256; ++flip) {
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
