#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// The messages of the key-value store (kvstore/messages.h) as bytes. Sessions take them only for a
// handler that asks for them (TypeBound). Every body is
//   u32      bytes of the head, this field and its checksum included
//   fields   of the message; their layouts stand beside the codecs
//   u32      bytes of the payload
//   u32      CRC32C of the payload
//   u32      CRC32C of the head so far
//   payload  values of a slice, as they are or compressed; empty in most messages
// so that the payload can be sent from, and read into, the memory of the slice. Pure and
// thread-safe. encode throws std::invalid_argument for a message that no one would accept; decode
// never throws.

// In an epoch, and in the list of those that advanced.
inline constexpr std::size_t max_kv_servers = 256;
inline constexpr std::size_t max_kv_workers = 4096;
// Slices are below 1,000,000 elements; a copy has up to three arrays of the optimizer as well.
inline constexpr std::uint64_t max_kv_slice_bytes = 8'000'000;
inline constexpr std::uint64_t max_kv_payload_bytes = 4 * max_kv_slice_bytes;
inline constexpr std::size_t max_kv_head_bytes = 2 << 20;

inline constexpr MessageType first_kv_type = MessageType::kv_init;
inline constexpr MessageType last_kv_type = MessageType::kv_answer_mapped;

constexpr bool is_kv_type(MessageType type) {
  return type >= first_kv_type && type <= last_kv_type;
}
MessageType type_of(const kvstore::Message& message);
std::uint64_t payload_bytes(const kvstore::Message& message);
// The bound on the body of a message of this type: for TypeBound.
std::uint64_t max_kv_body_bytes(MessageType type);

// KV_READ: the worker has read the values of all KV_ANSWER_MAPPED up to this number.
//   u64 number; u32 checksum
inline constexpr std::uint64_t kv_read_bytes = 12;
std::vector<std::byte> encode_kv_read(std::uint64_t number, std::uint32_t request_id = 0);
Decoded<std::uint64_t> decode_kv_read(std::span<const std::byte> body);

// The frame of a message: `head` and then the parts, which view the message.
struct KvFrame {
  std::vector<std::byte> head;
  std::vector<std::span<const std::byte>> payload;
};
KvFrame encode(const kvstore::Message& message, std::uint32_t request_id);

// Frames that leave in one write. Heads and short payloads lie one after the other in memory of its
// own, so that a thousand small keys cost a few system calls; long payloads are views of their
// messages, which must outlive it. One owner, one thread.
class KvFrames {
 public:
  // What leaves together. A message that does not fit leaves alone, so that what is urgent waits
  // for this much or for one slice.
  static constexpr std::size_t usual_bytes = std::size_t{64} << 10;

  bool has_room_for(const kvstore::Message& message) const;
  // Throws as encode() does, and is as before then.
  void add(const kvstore::Message& message, std::uint32_t request_id);
  // Frames of other messages.
  void add(std::span<const std::byte> frame);
  bool empty() const { return bytes() == 0; }
  std::size_t bytes() const { return copied_.size() + viewed_bytes_; }
  std::vector<std::span<const std::byte>> parts() const;  // in their order
  void clear();

 private:
  static constexpr std::size_t most_copied_bytes = std::size_t{4} << 10;
  struct View {
    std::size_t after = 0;  // bytes of copied_
    std::span<const std::byte> bytes;
  };
  std::vector<std::byte> copied_;
  std::vector<View> views_;
  std::size_t viewed_bytes_ = 0;
};

// The head of a body, without the payload. `head`: as many bytes as its first field says.
struct KvHead {
  kvstore::Message message;
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;
};
inline constexpr std::size_t kv_head_length_bytes = 4;
// The length of the head that begins with these bytes.
Decoded<std::uint32_t> kv_head_bytes(std::span<const std::byte, kv_head_length_bytes> start,
                                     std::uint64_t body_bytes);
Decoded<KvHead> decode_kv_head(MessageType type, std::span<const std::byte> head);
// The message with its payload, whose checksum is compared.
Decoded<kvstore::Message> with_payload(KvHead head, kvstore::Bytes payload);
Decoded<kvstore::Message> with_payload(KvHead head, std::span<const std::byte> payload);

// Head and payload at once, in memory of their own or one after the other.
Decoded<kvstore::Message> decode_kv(MessageType type, std::span<const std::byte> head,
                                    kvstore::Bytes payload);
Decoded<kvstore::Message> decode_kv(MessageType type, std::span<const std::byte> body);
// An answer whose payload was read to where its values belong: it has empty values then.
Decoded<kvstore::Message> decode_landed(std::span<const std::byte> head,
                                        std::span<const std::byte> landed);

}  // namespace dpwa::wire
