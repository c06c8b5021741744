#include "dpwa/collectives/link_greeting.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>
#include <vector>

#include "dpwa/base/numbers.h"
#include "dpwa/base/plain_text.h"

namespace dpwa::collectives {
namespace {

constexpr std::string_view greeting_mark = "dpwalnk1";
constexpr std::string_view reply_mark = "dpwalnk2";
constexpr std::size_t mark_bytes = 8;
constexpr std::size_t max_host_bytes = 255;
constexpr std::string_view digits = "0123456789abcdef";

template <typename Number>
void put(std::span<std::byte> into, std::size_t at, Number value) {
  boost::endian::endian_store<Number, sizeof(Number), boost::endian::order::little>(
      reinterpret_cast<unsigned char*>(into.data() + at), value);
}

template <typename Number>
Number get(std::span<const std::byte> from, std::size_t at) {
  return boost::endian::endian_load<Number, sizeof(Number), boost::endian::order::little>(
      reinterpret_cast<const unsigned char*>(from.data() + at));
}

void put_bytes(std::span<std::byte> into, std::size_t at, const void* bytes, std::size_t count) {
  std::memcpy(into.data() + at, bytes, count);
}

bool begins_with(std::span<const std::byte> from, std::string_view mark) {
  return std::memcmp(from.data(), mark.data(), mark.size()) == 0;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

Key key_in(std::span<const std::byte> from, std::size_t at) {
  Key key;
  std::memcpy(key.bytes.data(), from.data() + at, key.bytes.size());
  return key;
}

std::string hexadecimal(const Key& key) {
  std::string text;
  for (const unsigned char byte : key.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::optional<Key> from_hexadecimal(std::string_view text) {
  Key key;
  if (text.size() != 2 * key.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const std::size_t high = digits.find(text[2 * i]);
    const std::size_t low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    key.bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return key;
}

}  // namespace

std::string MemberAddress::text() const {
  return host + " " + std::to_string(port) + " " + hexadecimal(token);
}

std::optional<MemberAddress> MemberAddress::parse(std::string_view text) {
  const std::size_t first = text.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  MemberAddress address;
  address.host = text.substr(0, first);
  const auto port = number_in<std::uint16_t>(text.substr(first + 1, second - first - 1));
  const auto token = from_hexadecimal(text.substr(second + 1));
  const bool good_host =
      !address.host.empty() && address.host.size() <= max_host_bytes && is_plain_text(address.host);
  if (!good_host || !port || *port == 0 || !token) return std::nullopt;
  address.port = *port;
  address.token = *token;
  return address;
}

// GREETING of a caller
//   offset size
//        0    8  "dpwalnk1"
//        8    2  kind: 1 data, 2 news
//       10    2  rank of the caller
//       12    2  rank of the called
//       14    2  members of the group
//       16    8  number of the group
//       24    8  reserved, 0
//       32   32  token of the called
std::array<std::byte, LinkGreeting::bytes> LinkGreeting::encode() const {
  std::array<std::byte, bytes> into{};
  put_bytes(into, 0, greeting_mark.data(), mark_bytes);
  put(into, 8, static_cast<std::uint16_t>(kind));
  put(into, 10, caller);
  put(into, 12, called);
  put(into, 14, size);
  put(into, 16, group);
  put_bytes(into, 32, token.bytes.data(), key_bytes);
  return into;
}

std::optional<LinkGreeting> LinkGreeting::decode(std::span<const std::byte, bytes> from) {
  const auto kind = get<std::uint16_t>(from, 8);
  const bool known = kind == static_cast<std::uint16_t>(LinkKind::data) ||
                     kind == static_cast<std::uint16_t>(LinkKind::news);
  if (!begins_with(from, greeting_mark) || !known || !is_zero(from.subspan(24, 8)))
    return std::nullopt;
  LinkGreeting greeting;
  greeting.kind = static_cast<LinkKind>(kind);
  greeting.caller = get<std::uint16_t>(from, 10);
  greeting.called = get<std::uint16_t>(from, 12);
  greeting.size = get<std::uint16_t>(from, 14);
  greeting.group = get<std::uint64_t>(from, 16);
  greeting.token = key_in(from, 32);
  return greeting;
}

// REPLY of the called
//   offset size
//        0    8  "dpwalnk2"
//        8   32  token of the caller
std::array<std::byte, LinkReply::bytes> LinkReply::encode() const {
  std::array<std::byte, bytes> into{};
  put_bytes(into, 0, reply_mark.data(), mark_bytes);
  put_bytes(into, mark_bytes, token.bytes.data(), key_bytes);
  return into;
}

std::optional<LinkReply> LinkReply::decode(std::span<const std::byte, bytes> from) {
  if (!begins_with(from, reply_mark)) return std::nullopt;
  return LinkReply{key_in(from, mark_bytes)};
}

// NEWS
//   offset size
//        0    1  kind: 1 farewell, 2 broken
//        1    3  reserved, 0
//        4    4  rank to blame, -1: none; of a farewell -1
std::array<std::byte, LinkNews::bytes> LinkNews::encode() const {
  std::array<std::byte, bytes> into{};
  put(into, 0, static_cast<std::uint8_t>(kind));
  put(into, 4, lost);
  return into;
}

std::optional<LinkNews> LinkNews::decode(std::span<const std::byte, bytes> from, int size) {
  const auto kind = get<std::uint8_t>(from, 0);
  const auto lost = get<std::int32_t>(from, 4);
  const bool known = kind == static_cast<std::uint8_t>(Kind::farewell) ||
                     kind == static_cast<std::uint8_t>(Kind::broken);
  if (!known || !is_zero(from.subspan(1, 3)) || lost < -1 || lost >= size) return std::nullopt;
  if (kind == static_cast<std::uint8_t>(Kind::farewell) && lost != -1) return std::nullopt;
  return LinkNews{static_cast<Kind>(kind), lost};
}

}  // namespace dpwa::collectives
