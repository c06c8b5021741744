#pragma once

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpwa/base/checksum.h"

namespace dpwa::test {

// The body of a message of the store (wire/kv_messages.h) with right lengths and checksums around
// fields and payload that may be anything. `content`: u16 bytes of the fields; fields; payload.
inline std::vector<std::byte> kv_body(std::span<const std::byte> content) {
  namespace endian = boost::endian;
  constexpr std::size_t length_bytes = 2;
  constexpr std::size_t around_fields = 16;  // of the head: its length and what follows the fields
  std::vector<std::byte> body;
  const auto number = [&](std::uint32_t value) {
    unsigned char bytes[4];
    endian::store_little_u32(bytes, value);
    const auto raw = std::as_bytes(std::span(bytes));
    body.insert(body.end(), raw.begin(), raw.end());
  };
  std::size_t size = 0;
  if (content.size() >= length_bytes) {
    size = endian::load_little_u16(reinterpret_cast<const unsigned char*>(content.data()));
    content = content.subspan(length_bytes);
  }
  const auto fields = content.first(std::min(size, content.size()));
  const auto payload = content.subspan(fields.size());
  number(static_cast<std::uint32_t>(fields.size() + around_fields));
  body.insert(body.end(), fields.begin(), fields.end());
  number(static_cast<std::uint32_t>(payload.size()));
  number(crc32c(payload));
  number(crc32c(body));
  body.insert(body.end(), payload.begin(), payload.end());
  return body;
}

// The other way round: content that becomes this body.
inline std::vector<std::byte> kv_content(std::span<const std::byte> body) {
  constexpr std::size_t around_fields = 16;
  const auto head =
      boost::endian::load_little_u32(reinterpret_cast<const unsigned char*>(body.data()));
  const std::size_t fields = head - around_fields;
  std::vector<std::byte> content = {static_cast<std::byte>(fields & 0xff),
                                    static_cast<std::byte>(fields >> 8)};
  content.insert(content.end(), body.begin() + 4, body.begin() + 4 + fields);
  content.insert(content.end(), body.begin() + head, body.end());
  return content;
}

}  // namespace dpwa::test
