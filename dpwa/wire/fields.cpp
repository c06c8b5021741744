#include "dpwa/wire/fields.h"

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
    throw std::invalid_argument(std::string(what) +
                                " is not UTF-8 or holds control or invisible characters");
  }
}

}  // namespace

Reader Reader::checked(std::span<const std::byte> bytes) {
  constexpr std::size_t crc_bytes = 4;
  if (bytes.size() < crc_bytes) {
    Reader reader({});
    reader.fail(Fault::truncated, "no room for the checksum");
    return reader;
  }
  const auto content = bytes.first(bytes.size() - crc_bytes);
  const std::uint32_t crc = Reader(bytes.last(crc_bytes)).u32();
  Reader reader(content);
  reader.require(crc == crc32c(content), Fault::bad_checksum, "checksum of the body is wrong");
  return reader;
}

std::span<const std::byte> Reader::take(std::size_t count) {
  if (fault_) return {};
  if (count > rest_.size()) {
    fail(Fault::truncated, "message ends in the middle of a field");
    return {};
  }
  const auto taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

void Reader::bytes(std::span<std::uint8_t> out) {
  const auto taken = take(out.size());
  std::transform(taken.begin(), taken.end(), out.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
}

void Reader::reserved(std::size_t count) {
  const auto taken = take(count);
  const bool zero =
      std::all_of(taken.begin(), taken.end(), [](std::byte b) { return b == std::byte{0}; });
  require(zero, Fault::bad_value, "reserved bytes are not zero");
}

std::string Reader::text(std::size_t min_bytes, std::size_t max_bytes, std::string_view what) {
  return read_text(u16(), min_bytes, max_bytes, what);
}

std::string Reader::long_text(std::size_t max_bytes, std::string_view what) {
  return read_text(u32(), 0, max_bytes, what);
}

std::string Reader::read_text(std::uint64_t size, std::size_t min_bytes, std::size_t max_bytes,
                              std::string_view what) {
  if (!in_range(size, min_bytes, max_bytes, std::string("length of ").append(what))) return {};
  const auto taken = take(size);
  const std::string_view view(reinterpret_cast<const char*>(taken.data()), taken.size());
  if (!is_plain_text(view)) {
    fail(Fault::bad_value,
         std::string(what) + " is not UTF-8 or holds control or invisible characters");
    return {};
  }
  return std::string(view);
}

bool Reader::in_range(std::uint64_t value, std::uint64_t first, std::uint64_t last,
                      std::string_view what) {
  if (value >= first && value <= last) return true;
  fail(Fault::bad_value, std::string(what) + " is " + std::to_string(value) + ", accepted: " +
                             std::to_string(first) + " to " + std::to_string(last));
  return false;
}

void Reader::fail(Fault fault, std::string detail) {
  if (fault_) return;
  fault_ = WireError{fault, std::move(detail)};
  rest_ = {};
}

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
  u32(crc32c(std::span(bytes_).subspan(begin_ + header_bytes)));
}

void Writer::end(MessageType type, std::uint32_t request_id, std::uint64_t bytes_to_follow) {
  const auto header = encode_header({type, request_id, body_bytes() + bytes_to_follow});
  std::ranges::copy(header, bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
}

std::vector<std::byte> Writer::finish(MessageType type, std::uint32_t request_id,
                                      std::uint64_t bytes_to_follow) && {
  end(type, request_id, bytes_to_follow);
  return std::move(bytes_);
}

}  // namespace dpwa::wire
