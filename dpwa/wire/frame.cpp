#include "dpwa/wire/frame.h"

#include <algorithm>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::array<std::uint8_t, 4> magic = {'D', 'P', 'W', 'A'};
constexpr std::size_t crc_bytes = 4;
constexpr std::size_t checked_bytes = header_bytes - crc_bytes;
constexpr std::uint64_t text_bytes(std::uint64_t longest) {
  return 2 + longest;
}
constexpr std::uint64_t member_bytes =
    16 + text_bytes(max_name_bytes) + max_member_addresses * text_bytes(45);
constexpr std::uint64_t tensor_bytes = text_bytes(max_tensor_name_bytes) + 3 + 8 * max_rank;

Decoded<FrameHeader> fault(Fault fault, std::string detail) {
  return WireError{fault, std::move(detail)};
}

}  // namespace

// Sums over the layouts of the codecs: everything that can be encoded is accepted, and nothing
// longer.
std::uint64_t max_body_bytes(MessageType type) {
  switch (type) {
    case MessageType::hello:
      return 48 + 2 * text_bytes(max_name_bytes) + crc_bytes;
    case MessageType::welcome:
      return 32 + text_bytes(max_name_bytes) + text_bytes(max_offer_bytes) + crc_bytes;
    case MessageType::reject:
      return 2 + text_bytes(max_reason_bytes) + crc_bytes;
    case MessageType::manifest:
      return 4 + max_tensors * tensor_bytes + crc_bytes;
    case MessageType::pull:
      return 36 + crc_bytes;
    case MessageType::error:
      return text_bytes(max_reason_bytes) + crc_bytes;
    case MessageType::status:
      return 4 + max_status_bytes + crc_bytes;
    case MessageType::manifest_request:
    case MessageType::not_modified:
    case MessageType::not_fresh:
    case MessageType::not_ready:
    case MessageType::busy:
    case MessageType::status_request:
      return crc_bytes;
    case MessageType::mapped:
      return 88 + crc_bytes;
    case MessageType::release:
      return 4 + crc_bytes;
    case MessageType::share:
      return 12 + crc_bytes;
    case MessageType::shared:
      return 4 + crc_bytes;
    case MessageType::trace_request:
      return 12 + crc_bytes;
    case MessageType::members:
      return 18 + max_member_entries * member_bytes + crc_bytes;
    default:  // SNAPSHOT; and those that need a TypeBound
      return 0;
  }
  return 0;
}

std::array<std::byte, header_bytes> encode_header(const FrameHeader& header) {
  using namespace boost::endian;
  std::array<unsigned char, header_bytes> out{};
  std::copy(magic.begin(), magic.end(), out.begin());
  out[4] = protocol_version;
  out[5] = static_cast<std::uint8_t>(header.type);
  store_little_u32(&out[8], header.request_id);
  store_little_u64(&out[16], header.body_bytes);
  store_little_u32(&out[checked_bytes], crc32c(std::as_bytes(std::span(out)).first(checked_bytes)));
  return std::bit_cast<std::array<std::byte, header_bytes>>(out);
}

Decoded<FrameHeader> decode_header(std::span<const std::byte, header_bytes> bytes,
                                   std::uint64_t max_snapshot_body,
                                   std::span<const TypeBound> more) {
  Reader in(bytes);
  std::array<std::uint8_t, 4> start{};
  in.bytes(start);
  if (start != magic) return fault(Fault::bad_magic, "not a dpwa peer: wrong magic");
  // Checked before the checksum, which a later version may have in another place.
  if (const unsigned version = in.u8(); version != protocol_version) {
    return fault(Fault::bad_version, "the frame has protocol version " + std::to_string(version) +
                                         "; accepted: " + std::to_string(protocol_version));
  }
  if (Reader(bytes.last(crc_bytes)).u32() != crc32c(bytes.first(checked_bytes))) {
    return fault(Fault::bad_checksum, "checksum of the header is wrong");
  }
  FrameHeader header;
  const unsigned type = in.u8();
  const auto added = std::ranges::find(more, static_cast<MessageType>(type), &TypeBound::type);
  if (!is_message_type(type) && added == more.end()) {
    return fault(Fault::bad_type, "unknown message type " + std::to_string(type));
  }
  header.type = static_cast<MessageType>(type);
  in.reserved(2);
  header.request_id = in.u32();
  in.reserved(4);
  header.body_bytes = in.u64();
  in.reserved(4);
  in.u32();

  const bool snapshot = header.type == MessageType::snapshot;
  const std::uint64_t least = snapshot ? snapshot_head_bytes : crc_bytes;
  const std::uint64_t most = snapshot              ? max_snapshot_body
                             : added != more.end() ? added->max_body_bytes
                                                   : max_body_bytes(header.type);
  if (header.body_bytes < least || header.body_bytes > most) {
    in.fail(Fault::bad_length, "body of message type " + std::to_string(type) + " has " +
                                   std::to_string(header.body_bytes) + " bytes; accepted: " +
                                   std::to_string(least) + " to " + std::to_string(most));
  }
  return in.finish(header);
}

}  // namespace dpwa::wire
