#include <cmath>
#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

// An observer has no parameters and no place in the cluster file; a node has both.
bool fits_role(const Hello& message) {
  const bool no_fingerprint = message.fingerprint == Fingerprint{};
  return message.role == Role::node ? !message.node.empty()
                                    : message.node.empty() && no_fingerprint;
}
constexpr std::string_view role_fault =
    "a node must give its name; an observer has neither name nor fingerprint";

bool has_good_clock(const Welcome& message) {
  return std::isfinite(message.clock) && message.clock >= 0;
}
constexpr std::string_view clock_fault = "clock in WELCOME is negative or not finite";

}  // namespace

// HELLO
//   offset size
//        0    1  role: 1 node, 2 observer
//        1    3  reserved, 0
//        4    4  capabilities
//        8    8  incarnation
//       16   32  fingerprint, 0 for an observer
//       48       cluster: u16 length (1 to 255) + UTF-8
//                node: u16 length (1 to 255; 0 for an observer) + UTF-8
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, Hello>& message) {
  side.choice(message.role, Role::node, Role::observer, "role");
  side.reserved(3);
  side.field(message.capabilities);
  side.field(message.incarnation);
  side.bytes(message.fingerprint);
  side.text(message.cluster, 1, max_name_bytes, "cluster name");
  side.text(message.node, 0, max_name_bytes, "node name");
  side.require(fits_role(message), Fault::bad_value, role_fault);
}

std::vector<std::byte> encode(const Hello& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::hello, request_id);
}

Decoded<Hello> decode_hello(std::span<const std::byte> body) {
  return decode_fields<Hello>(body);
}

// WELCOME
//   offset size
//        0    1  state: 1 joining, 2 ready, 3 finished
//        1    3  reserved, 0
//        4    4  capabilities
//        8    8  incarnation
//       16    8  lineage of the latest snapshot, 0 = none yet
//       24    8  clock of the latest snapshot, IEEE 754 binary64
//       32       node: u16 length (1 to 255) + UTF-8
//                same host: u16 length (0 to 255) + UTF-8
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, Welcome>& message) {
  side.choice(message.state, NodeState::joining, NodeState::finished, "node state");
  side.reserved(3);
  side.field(message.capabilities);
  side.field(message.incarnation);
  side.field(message.lineage);
  side.field(message.clock);
  side.require(has_good_clock(message), Fault::bad_value, clock_fault);
  side.text(message.node, 1, max_name_bytes, "node name");
  side.text(message.same_host, 0, max_offer_bytes, "offer for the same host");
}

std::vector<std::byte> encode(const Welcome& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::welcome, request_id);
}

Decoded<Welcome> decode_welcome(std::span<const std::byte> body) {
  return decode_fields<Welcome>(body);
}

// REJECT
//   offset size
//        0    2  code: 1 version, 2 cluster, 3 unknown node, 4 model, 5 own name, 6 security
//        2       reason: u16 length (0 to 1024) + UTF-8
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, Reject>& message) {
  side.choice(message.code, RejectCode::version, RejectCode::security, "reject code");
  words(side, message.reason, max_reason_bytes, "reason");
}

std::vector<std::byte> encode(const Reject& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::reject, request_id);
}

Decoded<Reject> decode_reject(std::span<const std::byte> body) {
  return decode_fields<Reject>(body);
}

}  // namespace dpwa::wire
