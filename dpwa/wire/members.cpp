#include <algorithm>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::size_t min_address_bytes = 2;   // "::"
constexpr std::size_t max_address_bytes = 45;  // an IPv4 address within an IPv6 one

// Whether the characters are those of a numeric address. The socket library decides whether it is
// one.
bool looks_numeric(const std::string& address) {
  return address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

constexpr std::string_view count_fault = "MEMBERS holds 1 to 128 members, the sender first";

}  // namespace

std::string_view fault_of(const MemberClaim& claim) {
  if (claim.name.empty() || claim.name.size() > max_name_bytes || !is_plain_text(claim.name))
    return "a member without a name, or with one that is too long or no plain text";
  if (claim.incarnation == 0) return "a member without an incarnation";
  if (claim.port == 0) return "a member without a port";
  if (claim.refutation > max_refutation) return "a refutation beyond the bound";
  if (claim.addresses.empty() || claim.addresses.size() > max_member_addresses)
    return "a member has 1 to 4 addresses";
  for (const std::string& address : claim.addresses) {
    const bool fits = address.size() >= min_address_bytes && address.size() <= max_address_bytes;
    if (!fits || !looks_numeric(address)) return "an address that is not numeric";
  }
  return {};
}

// MEMBERS
//   offset size
//        0    4  members that the sender knows, itself included
//        4    8  digest of those that it holds to run
//       12    4  part of the receiver's table that is wanted if the digests differ
//       16    2  number of entries, 1 to 128; then for each, the sender first:
//                1  status: 1 alive, 2 suspect, 3 dead, 4 left
//                1  number of addresses, 1 to 4
//                2  port, not 0
//                4  refutation, at most 2^31
//                8  incarnation, not 0
//                   name: u16 length (1 to 255) + UTF-8
//                   addresses: each u16 length (2 to 45) + digits, a-f, ':', '.'
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, MemberClaim>& claim) {
  auto addresses = static_cast<std::uint8_t>(claim.addresses.size());
  side.choice(claim.status, MemberStatus::alive, MemberStatus::left, "status of a member");
  side.field(addresses);
  side.require(addresses <= max_member_addresses, Fault::bad_value,
               "a member has 1 to 4 addresses");
  side.field(claim.port);
  side.field(claim.refutation);
  side.field(claim.incarnation);
  side.text(claim.name, 1, max_name_bytes, "name of a member");
  if constexpr (reads<Side>) {
    if (side.failed()) return;
    claim.addresses.resize(addresses);
  }
  for (auto& address : claim.addresses)
    side.text(address, min_address_bytes, max_address_bytes, "address of a member");
  const std::string_view fault = fault_of(claim);
  side.require(fault.empty(), Fault::bad_value, fault);
}

template <typename Side>
void fields(Side& side, Of<Side, MemberExchange>& message) {
  auto entries = static_cast<std::uint16_t>(std::min<std::size_t>(message.claims.size(), 0xffff));
  side.field(message.total);
  side.field(message.digest);
  side.field(message.part);
  side.field(entries);
  side.require(entries >= 1 && entries <= max_member_entries, Fault::bad_value, count_fault);
  if constexpr (reads<Side>) {
    for (std::size_t i = 0; i < entries && !side.failed(); ++i)
      fields(side, message.claims.emplace_back());
  } else {
    for (const MemberClaim& claim : message.claims) fields(side, claim);
  }
}

std::vector<std::byte> encode(const MemberExchange& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::members, request_id);
}

Decoded<MemberExchange> decode_members(std::span<const std::byte> body) {
  return decode_fields<MemberExchange>(body);
}

}  // namespace dpwa::wire
