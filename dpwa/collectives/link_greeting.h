#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dpwa/security/private_file.h"

namespace dpwa::collectives {

// Where a member listens, and a random number that whoever calls it must know: the other members,
// which were told it. Its text is "address port token", with the token as hexadecimal digits.
struct MemberAddress {
  std::string host;
  std::uint16_t port = 0;
  Key token;

  std::string text() const;
  // None: it is no such text. Pure.
  static std::optional<MemberAddress> parse(std::string_view text);
};

inline constexpr int most_link_members = 4096;

// What two members carry over a connection between them.
enum class LinkKind : std::uint8_t { data = 1, news = 2 };

// The first bytes of a caller. Its answer is a GreetingReply: each end shows that it knows the
// token of the other one.
struct LinkGreeting {
  static constexpr std::size_t bytes = 64;

  LinkKind kind = LinkKind::data;
  std::uint16_t caller = 0;
  std::uint16_t called = 0;
  std::uint16_t size = 0;
  std::uint64_t group = 0;
  Key token;  // of the called

  std::array<std::byte, bytes> encode() const;
  // None: a stranger has sent it.
  static std::optional<LinkGreeting> decode(std::span<const std::byte, bytes> from);
};

struct LinkReply {
  static constexpr std::size_t bytes = 40;

  Key token;  // of the caller

  std::array<std::byte, bytes> encode() const;
  static std::optional<LinkReply> decode(std::span<const std::byte, bytes> from);
};

// What a member tells the others about the group, beside the operations.
struct LinkNews {
  static constexpr std::size_t bytes = 8;
  enum class Kind : std::uint8_t { farewell = 1, broken = 2 };

  Kind kind = Kind::farewell;
  std::int32_t lost = -1;  // the rank to blame; -1: none

  std::array<std::byte, bytes> encode() const;
  // None: no member of a group of this size says that.
  static std::optional<LinkNews> decode(std::span<const std::byte, bytes> from, int size);
};

}  // namespace dpwa::collectives
