#include "dpwa/wire/kv_messages.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "dpwa/base/checksum.h"
#include "dpwa/wire/kv_fields.h"

namespace dpwa::wire {
namespace {

using kvstore::Bytes;
using kvstore::Message;
using Parts = std::vector<std::span<const std::byte>>;

constexpr std::size_t tail_bytes = 4 + 4 + 4;  // length and checksum of the payload, checksum

template <typename Content, std::size_t Index = 0>
constexpr MessageType type_of_content() {
  if constexpr (std::is_same_v<Content, std::variant_alternative_t<Index, InOrder>>) {
    return static_cast<MessageType>(static_cast<unsigned>(first_kv_type) + Index);
  } else {
    return type_of_content<Content, Index + 1>();
  }
}

Parts parts_of(const Message& message) {
  if (const auto* init = std::get_if<kvstore::Init>(&message)) return {init->values};
  if (const auto* push = std::get_if<kvstore::Push>(&message)) {
    if (push->place) return {};
    return {push->content()};
  }
  if (const auto* forward = std::get_if<kvstore::Forward>(&message)) return {forward->gradient};
  if (const auto* state = std::get_if<kvstore::StateMessage>(&message)) return {state->state};
  if (const auto* answer = std::get_if<kvstore::Answer>(&message); answer && answer->values) {
    return {*answer->values};
  }
  if (const auto* copy = std::get_if<kvstore::Copy>(&message); copy && copy->values) {
    return {*copy->values, copy->optimizer_state};
  }
  return {};
}

std::uint64_t bytes_of(const Parts& parts) {
  std::uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

std::uint64_t max_payload_bytes(MessageType type) {
  switch (type) {
    case MessageType::kv_init:
    case MessageType::kv_push:
    case MessageType::kv_answer:
    case MessageType::kv_forward:
      return max_kv_slice_bytes;
    case MessageType::kv_copy:
    case MessageType::kv_state:
      return max_kv_payload_bytes;
    default:
      return 0;
  }
}

// Behind `out`: the header of a frame and the head of its body.
void append_head(std::vector<std::byte>& out, const Message& message, const Parts& payload,
                 std::uint32_t request_id) {
  const std::uint64_t bytes = bytes_of(payload);
  Crc32c crc;
  for (const auto& part : payload) crc.update(part);
  const MessageType type = type_of(message);
  if (bytes > max_payload_bytes(type)) throw std::invalid_argument("payload is too long");
  Writer head(out);
  head.u32(0);  // its length
  write_fields(head, message);
  head.set_first_u32(static_cast<std::uint32_t>(head.body_bytes() + tail_bytes));
  head.u32(static_cast<std::uint32_t>(bytes));
  head.u32(crc.value());
  head.checksum();
  head.end(type, request_id, bytes);
}

}  // namespace

MessageType type_of(const Message& message) {
  if (const auto* push = std::get_if<kvstore::Push>(&message); push && push->place)
    return MessageType::kv_push_mapped;
  if (const auto* answer = std::get_if<kvstore::Answer>(&message); answer && answer->place)
    return MessageType::kv_answer_mapped;
  return std::visit(
      [](const auto& content) { return type_of_content<std::decay_t<decltype(content)>>(); },
      message);
}

std::uint64_t payload_bytes(const Message& message) {
  return bytes_of(parts_of(message));
}

std::uint64_t max_kv_body_bytes(MessageType type) {
  return max_kv_head_bytes + max_payload_bytes(type);
}

KvFrame encode(const Message& message, std::uint32_t request_id) {
  KvFrame frame;
  frame.payload = parts_of(message);
  append_head(frame.head, message, frame.payload, request_id);
  return frame;
}

bool KvFrames::has_room_for(const Message& message) const {
  return empty() || bytes() + bytes_of(parts_of(message)) < usual_bytes;
}

void KvFrames::add(const Message& message, std::uint32_t request_id) {
  const Parts payload = parts_of(message);
  const std::size_t before = copied_.size();
  try {
    append_head(copied_, message, payload, request_id);
  } catch (...) {
    copied_.resize(before);
    throw;
  }
  for (const auto& part : payload) {
    if (part.size() <= most_copied_bytes) {
      copied_.insert(copied_.end(), part.begin(), part.end());
    } else {
      views_.push_back({copied_.size(), part});
      viewed_bytes_ += part.size();
    }
  }
}

void KvFrames::add(std::span<const std::byte> frame) {
  copied_.insert(copied_.end(), frame.begin(), frame.end());
}

std::vector<std::span<const std::byte>> KvFrames::parts() const {
  std::vector<std::span<const std::byte>> all;
  const std::span<const std::byte> copied(copied_);
  std::size_t from = 0;
  for (const View& view : views_) {
    if (view.after > from) all.push_back(copied.subspan(from, view.after - from));
    all.push_back(view.bytes);
    from = view.after;
  }
  if (copied.size() > from) all.push_back(copied.subspan(from));
  return all;
}

void KvFrames::clear() {
  copied_.clear();
  views_.clear();
  viewed_bytes_ = 0;
}

std::vector<std::byte> encode_kv_read(std::uint64_t number, std::uint32_t request_id) {
  Writer out;
  out.u64(number);
  out.checksum();
  return std::move(out).finish(MessageType::kv_read, request_id);
}

Decoded<std::uint64_t> decode_kv_read(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  const std::uint64_t number = in.u64();
  return in.finish(number);
}

Decoded<std::uint32_t> kv_head_bytes(std::span<const std::byte, kv_head_length_bytes> start,
                                     std::uint64_t body_bytes) {
  Reader in(start);
  const std::uint32_t bytes = in.u32();
  const std::uint64_t most = std::min<std::uint64_t>(body_bytes, max_kv_head_bytes);
  in.require(bytes >= kv_head_length_bytes + tail_bytes && bytes <= most, Fault::bad_length,
             "length of the head of a message of the store");
  return in.finish(bytes);
}

Decoded<KvHead> decode_kv_head(MessageType type, std::span<const std::byte> head) {
  Reader in = Reader::checked(head);
  const std::uint32_t length = in.u32();
  in.require(length == head.size(), Fault::bad_length, "length of the head is wrong");
  in.require(is_kv_type(type), Fault::bad_type, "not a message of the store");
  KvHead result;
  if (in.failed()) return in.finish(std::move(result));
  result.message = read_fields(in, type);
  result.payload_bytes = in.u32();
  result.payload_crc = in.u32();
  in.require(result.payload_bytes <= max_payload_bytes(type), Fault::bad_length,
             "payload is too long");
  if (const auto* copy = std::get_if<kvstore::Copy>(&result.message); copy && copy->values) {
    in.require(copy->values->size() <= result.payload_bytes, Fault::bad_length,
               "values are longer than the payload");
  }
  return in.finish(std::move(result));
}

Decoded<Message> with_payload(KvHead head, std::span<const std::byte> payload) {
  return with_payload(std::move(head), copy_of(payload));
}

Decoded<Message> with_payload(KvHead head, Bytes payload) {
  if (payload.size() != head.payload_bytes) {
    return WireError{Fault::bad_length, "length of the payload is wrong"};
  }
  if (crc32c(payload) != head.payload_crc) {
    return WireError{Fault::bad_checksum, "checksum of the payload is wrong"};
  }
  Message& message = head.message;
  if (auto* init = std::get_if<kvstore::Init>(&message)) init->values = std::move(payload);
  if (auto* push = std::get_if<kvstore::Push>(&message)) push->values = std::move(payload);
  if (auto* state = std::get_if<kvstore::StateMessage>(&message)) state->state = std::move(payload);
  if (auto* forward = std::get_if<kvstore::Forward>(&message))
    forward->gradient = std::move(payload);
  if (auto* answer = std::get_if<kvstore::Answer>(&message); answer && !payload.empty()) {
    answer->values = std::make_shared<Bytes>(std::move(payload));
  }
  if (auto* copy = std::get_if<kvstore::Copy>(&message)) {
    const std::size_t values = copy->values->size();
    copy->optimizer_state = copy_of(std::span(payload).subspan(values));
    payload.resize(values);
    *copy->values = std::move(payload);
  }
  return std::move(message);
}

Decoded<Message> decode_kv(MessageType type, std::span<const std::byte> head, Bytes payload) {
  auto decoded = decode_kv_head(type, head);
  if (!decoded) return decoded.error();
  return with_payload(*std::move(decoded), std::move(payload));
}

Decoded<Message> decode_landed(std::span<const std::byte> head, std::span<const std::byte> landed) {
  auto decoded = decode_kv_head(MessageType::kv_answer, head);
  if (!decoded) return decoded.error();
  if (landed.size() != decoded->payload_bytes)
    return WireError{Fault::bad_length, "length of the payload is wrong"};
  if (crc32c(landed) != decoded->payload_crc)
    return WireError{Fault::bad_checksum, "checksum of the payload is wrong"};
  std::get<kvstore::Answer>(decoded->message).values = std::make_shared<Bytes>();
  return std::move(decoded->message);
}

Decoded<Message> decode_kv(MessageType type, std::span<const std::byte> body) {
  if (body.size() < kv_head_length_bytes) return WireError{Fault::truncated, "no head"};
  const auto head_bytes = kv_head_bytes(body.first<kv_head_length_bytes>(), body.size());
  if (!head_bytes) return head_bytes.error();
  auto head = decode_kv_head(type, body.first(*head_bytes));
  if (!head) return head.error();
  return with_payload(*std::move(head), body.subspan(*head_bytes));
}

}  // namespace dpwa::wire
