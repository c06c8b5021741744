#include <cmath>
#include <stdexcept>
#include <utility>

#include "dpwa/base/plain_text.h"
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
std::vector<std::byte> encode(const Hello& message, std::uint32_t request_id) {
  if (!fits_role(message)) throw std::invalid_argument(std::string(role_fault));
  Writer out;
  out.u8(static_cast<std::uint8_t>(message.role));
  out.reserved(3);
  out.u32(message.capabilities);
  out.u64(message.incarnation);
  out.bytes(message.fingerprint);
  out.text(message.cluster, 1, max_name_bytes, "cluster name");
  out.text(message.node, 0, max_name_bytes, "node name");
  out.checksum();
  return std::move(out).finish(MessageType::hello, request_id);
}

Decoded<Hello> decode_hello(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Hello message;
  message.role = in.choice(Role::node, Role::observer, "role");
  in.reserved(3);
  message.capabilities = in.u32();
  message.incarnation = in.u64();
  in.bytes(message.fingerprint);
  message.cluster = in.text(1, max_name_bytes, "cluster name");
  message.node = in.text(0, max_name_bytes, "node name");
  in.require(fits_role(message), Fault::bad_value, role_fault);
  return in.finish(std::move(message));
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
std::vector<std::byte> encode(const Welcome& message, std::uint32_t request_id) {
  if (!has_good_clock(message)) throw std::invalid_argument(std::string(clock_fault));
  Writer out;
  out.u8(static_cast<std::uint8_t>(message.state));
  out.reserved(3);
  out.u32(message.capabilities);
  out.u64(message.incarnation);
  out.u64(message.lineage);
  out.f64(message.clock);
  out.text(message.node, 1, max_name_bytes, "node name");
  out.text(message.same_host, 0, max_offer_bytes, "offer for the same host");
  out.checksum();
  return std::move(out).finish(MessageType::welcome, request_id);
}

Decoded<Welcome> decode_welcome(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Welcome message;
  message.state = in.choice(NodeState::joining, NodeState::finished, "node state");
  in.reserved(3);
  message.capabilities = in.u32();
  message.incarnation = in.u64();
  message.lineage = in.u64();
  message.clock = in.f64();
  in.require(has_good_clock(message), Fault::bad_value, clock_fault);
  message.node = in.text(1, max_name_bytes, "node name");
  message.same_host = in.text(0, max_offer_bytes, "offer for the same host");
  return in.finish(std::move(message));
}

// REJECT
//   offset size
//        0    2  code: 1 version, 2 cluster, 3 unknown node, 4 model, 5 own name, 6 security
//        2       reason: u16 length (0 to 1024) + UTF-8
//                CRC32C of the body so far
std::vector<std::byte> encode(const Reject& message, std::uint32_t request_id) {
  Writer out;
  out.u16(static_cast<std::uint16_t>(message.code));
  out.text(to_plain_text(message.reason, max_reason_bytes), 0, max_reason_bytes, "reason");
  out.checksum();
  return std::move(out).finish(MessageType::reject, request_id);
}

Decoded<Reject> decode_reject(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Reject message;
  message.code = in.choice(RejectCode::version, RejectCode::security, "reject code");
  message.reason = in.text(0, max_reason_bytes, "reason");
  return in.finish(std::move(message));
}

}  // namespace dpwa::wire
