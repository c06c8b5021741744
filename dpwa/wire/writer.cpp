#include "dpwa/wire/writer.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/base/plain_text.h"

namespace dpwa::wire {
namespace {

void check(std::string_view value, std::size_t min_bytes, std::size_t max_bytes,
           std::string_view what) {
  if (value.size() < min_bytes || value.size() > max_bytes) {
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(value.size()) +
                                " bytes; accepted: " + std::to_string(min_bytes) + " to " +
                                std::to_string(max_bytes));
  }
  if (!is_plain_text(value)) {
    throw std::invalid_argument(std::string(what) + " is not UTF-8 or holds control characters");
  }
}

}  // namespace

void Writer::bytes(std::span<const std::uint8_t> values) {
  const auto raw = std::as_bytes(values);
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
}

void Writer::text(std::string_view value, std::size_t min_bytes, std::size_t max_bytes,
                  std::string_view what) {
  check(value, min_bytes, max_bytes, what);
  u16(static_cast<std::uint16_t>(value.size()));
  append(value);
}

void Writer::long_text(std::string_view value, std::size_t max_bytes, std::string_view what) {
  check(value, 0, max_bytes, what);
  u32(static_cast<std::uint32_t>(value.size()));
  append(value);
}

void Writer::append(std::string_view value) {
  const auto raw = std::as_bytes(std::span(value));
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
}

void Writer::checksum() {
  u32(crc32c(std::span(bytes_).subspan(header_bytes)));
}

std::vector<std::byte> Writer::finish(MessageType type, std::uint32_t request_id,
                                      std::uint64_t bytes_to_follow) && {
  const std::uint64_t body_bytes = bytes_.size() - header_bytes + bytes_to_follow;
  const auto header = encode_header({type, request_id, body_bytes});
  std::copy(header.begin(), header.end(), bytes_.begin());
  return std::move(bytes_);
}

}  // namespace dpwa::wire
