#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {

// STATUS
//   offset size
//        0       json: u32 length (0 to 2^20) + UTF-8, one JSON object on one line
//                CRC32C of the body so far
std::vector<std::byte> encode(const Status& message, std::uint32_t request_id) {
  Writer out;
  out.long_text(message.json, max_status_bytes, "status");
  out.checksum();
  return std::move(out).finish(MessageType::status, request_id);
}

Decoded<Status> decode_status(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Status message;
  message.json = in.long_text(max_status_bytes, "status");
  return in.finish(std::move(message));
}

// ERROR
//   offset size
//        0       reason: u16 length (0 to 1024) + UTF-8
//                CRC32C of the body so far
std::vector<std::byte> encode(const Error& message, std::uint32_t request_id) {
  Writer out;
  out.text(to_plain_text(message.reason, max_reason_bytes), 0, max_reason_bytes, "reason");
  out.checksum();
  return std::move(out).finish(MessageType::error, request_id);
}

Decoded<Error> decode_error(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Error message;
  message.reason = in.text(0, max_reason_bytes, "reason");
  return in.finish(std::move(message));
}

// MANIFEST_REQUEST, NOT_MODIFIED, NOT_READY, BUSY, STATUS_REQUEST: the CRC32C of nothing, which is
// 0.
std::vector<std::byte> encode_empty(MessageType type, std::uint32_t request_id) {
  Writer out;
  out.checksum();
  return std::move(out).finish(type, request_id);
}

Decoded<bool> decode_empty(std::span<const std::byte> body) {
  return Reader::checked(body).finish(true);
}

}  // namespace dpwa::wire
