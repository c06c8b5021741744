#include <stdexcept>
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
std::vector<std::byte> encode(const MemberExchange& message, std::uint32_t request_id) {
  if (message.claims.empty() || message.claims.size() > max_member_entries)
    throw std::invalid_argument(std::string(count_fault));
  Writer out;
  out.u32(message.total);
  out.u64(message.digest);
  out.u32(message.part);
  out.u16(static_cast<std::uint16_t>(message.claims.size()));
  for (const MemberClaim& claim : message.claims) {
    if (const auto fault = fault_of(claim); !fault.empty())
      throw std::invalid_argument(std::string(fault));
    out.u8(static_cast<std::uint8_t>(claim.status));
    out.u8(static_cast<std::uint8_t>(claim.addresses.size()));
    out.u16(claim.port);
    out.u32(claim.refutation);
    out.u64(claim.incarnation);
    out.text(claim.name, 1, max_name_bytes, "name of a member");
    for (const std::string& address : claim.addresses)
      out.text(address, min_address_bytes, max_address_bytes, "address of a member");
  }
  out.checksum();
  return std::move(out).finish(MessageType::members, request_id);
}

Decoded<MemberExchange> decode_members(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  MemberExchange message;
  message.total = in.u32();
  message.digest = in.u64();
  message.part = in.u32();
  const std::size_t entries = in.u16();
  in.require(entries >= 1 && entries <= max_member_entries, Fault::bad_value, count_fault);
  for (std::size_t i = 0; i < entries && !in.failed(); ++i) {
    MemberClaim claim;
    claim.status = in.choice(MemberStatus::alive, MemberStatus::left, "status of a member");
    const std::size_t addresses = in.u8();
    in.require(addresses <= max_member_addresses, Fault::bad_value,
               "a member has 1 to 4 addresses");
    claim.port = in.u16();
    claim.refutation = in.u32();
    claim.incarnation = in.u64();
    claim.name = in.text(1, max_name_bytes, "name of a member");
    for (std::size_t k = 0; k < addresses && !in.failed(); ++k)
      claim.addresses.push_back(
          in.text(min_address_bytes, max_address_bytes, "address of a member"));
    if (const auto fault = fault_of(claim); !fault.empty())
      in.require(false, Fault::bad_value, fault);
    message.claims.push_back(std::move(claim));
  }
  return in.finish(std::move(message));
}

}  // namespace dpwa::wire
