#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {

// STATUS
//   offset size
//        0       json: u32 length (0 to 2^20) + UTF-8, one JSON object on one line
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, Status>& message) {
  side.long_text(message.json, max_status_bytes, "status");
}

std::vector<std::byte> encode(const Status& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::status, request_id);
}

Decoded<Status> decode_status(std::span<const std::byte> body) {
  return decode_fields<Status>(body);
}

// TRACE_REQUEST
//   offset size
//        0    8  the first span asked for
//        8    4  record for so many milliseconds, 0 to 60,000; 0: do not begin
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, TraceRequest>& message) {
  side.field(message.from);
  side.field(message.record_ms);
  side.require(message.record_ms <= max_record_ms, Fault::bad_value, "records for too long");
}

std::vector<std::byte> encode(const TraceRequest& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::trace_request, request_id);
}

Decoded<TraceRequest> decode_trace_request(std::span<const std::byte> body) {
  return decode_fields<TraceRequest>(body);
}

// ERROR
//   offset size
//        0       reason: u16 length (0 to 1024) + UTF-8
//                CRC32C of the body so far
template <typename Side>
void fields(Side& side, Of<Side, Error>& message) {
  words(side, message.reason, max_reason_bytes, "reason");
}

std::vector<std::byte> encode(const Error& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::error, request_id);
}

Decoded<Error> decode_error(std::span<const std::byte> body) {
  return decode_fields<Error>(body);
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
