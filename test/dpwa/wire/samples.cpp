#include "test/dpwa/wire/samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>

#include "dpwa/wire/checksum.h"

namespace dpwa::wire {
namespace {

constexpr std::uint32_t id = 0x01020304;

// Head, and chunks whose payload is 0, 1, 2, ... modulo 251.
std::vector<std::byte> snapshot_frame(const SnapshotHead& head) {
  std::vector<std::byte> frame = encode(head, id);
  std::vector<std::byte> payload(head.length);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i % 251);
  for (std::size_t at = 0; at < payload.size(); at += head.chunk_bytes) {
    const auto size = std::min<std::size_t>(head.chunk_bytes, payload.size() - at);
    const auto chunk = std::span(payload).subspan(at, size);
    const auto header = encode_chunk_header({static_cast<std::uint32_t>(size), crc32c(chunk)});
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), chunk.begin(), chunk.end());
  }
  return frame;
}

Decoded<std::vector<std::byte>> transcode_snapshot(std::uint32_t request_id,
                                                   std::span<const std::byte> body) {
  if (body.size() < snapshot_head_bytes) return WireError{Fault::truncated, "head"};
  const auto head = decode_snapshot_head(body.first<snapshot_head_bytes>(), body.size());
  if (!head) return head.error();
  std::vector<std::byte> frame = encode(*head, request_id);
  auto rest = body.subspan(snapshot_head_bytes);
  for (std::uint64_t left = head->length; left > 0;) {
    const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, head->chunk_bytes));
    if (rest.size() < chunk_header_bytes + size) return WireError{Fault::truncated, "chunk"};
    const auto chunk = decode_chunk_header(rest.first<chunk_header_bytes>(), size);
    if (!chunk) return chunk.error();
    const auto payload = rest.subspan(chunk_header_bytes, size);
    if (chunk->crc != crc32c(payload)) return WireError{Fault::bad_checksum, "payload"};
    const auto header = encode_chunk_header(*chunk);
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), payload.begin(), payload.end());
    rest = rest.subspan(chunk_header_bytes + size);
    left -= size;
  }
  if (!rest.empty()) return WireError{Fault::bad_length, "bytes after the last chunk"};
  return frame;
}

template <typename T>
Decoded<std::vector<std::byte>> again(const Decoded<T>& message, std::uint32_t request_id) {
  if (!message) return message.error();
  return encode(*message, request_id);
}

}  // namespace

Manifest sample_manifest() {
  return Manifest({{"fc1.weight", DType::float32, BlendRule::interpolate, {128, 784}},
                   {"fc1.bias", DType::float32, BlendRule::interpolate, {128}},
                   {"bn.num_batches_tracked", DType::int64, BlendRule::maximum, {}},
                   {"embedding.weight", DType::bfloat16, BlendRule::carry, {10, 3, 0x0102030405}}});
}

Hello sample_hello() {
  Hello hello{.role = Role::node, .capabilities = 1 << 1, .cluster = "digits", .node = "w1"};
  hello.incarnation = 0x1122334455667788;
  for (std::size_t i = 0; i < hello.fingerprint.size(); ++i) {
    hello.fingerprint[i] = static_cast<std::uint8_t>(i + 1);
  }
  return hello;
}

Welcome sample_welcome() {
  return {"w2", 7, 1 << 1, NodeState::ready, 0xA1B2C3D4E5F60718, 3.5};
}

SnapshotHead sample_head() {
  SnapshotHead head;
  head.progress = {.version = 42, .lineage = 0xA1B2C3D4E5F60718, .clock = 41.5, .loss = 0.25};
  head.progress.weight = 0.75;
  head.progress.time_us = 1700000000123456;
  head.offset = 64;
  head.length = 4096 + 100;
  head.chunk_bytes = min_chunk_bytes;
  return head;
}

std::vector<Sample> samples() {
  Hello observer{.role = Role::observer, .capabilities = 0, .cluster = "digits", .node = ""};
  SnapshotHead last = sample_head();
  last.progress.final = true;
  last.progress.loss = std::numeric_limits<double>::quiet_NaN();
  last.progress.time_us = -1;
  last.state = NodeState::finished;
  last.offset = 0;
  last.length = 0;
  const Pull pull{.known_version = 41, .offset = 64, .length = 4196, .deadline_ms = 500};
  Pull full = pull;
  full.full = true;
  Pull last_pull = full;
  last_pull.for_final_average = true;
  const std::string reason =
      "tensor 3 'fc2.weight' is float32[10,128] here and float32[10,256] there";
  return {
      {"hello_node", encode(sample_hello(), id)},
      {"hello_observer", encode(observer, id)},
      {"welcome", encode(sample_welcome(), id)},
      {"reject", encode(Reject{RejectCode::model, reason}, id)},
      {"manifest_request", encode_empty(MessageType::manifest_request, id)},
      {"manifest", encode(sample_manifest(), id)},
      {"pull", encode(pull, id)},
      {"pull_full", encode(full, id)},
      {"pull_final_average", encode(last_pull, id)},
      {"snapshot", snapshot_frame(sample_head())},
      {"snapshot_final_empty", snapshot_frame(last)},
      {"not_modified", encode_empty(MessageType::not_modified, id)},
      {"not_ready", encode_empty(MessageType::not_ready, id)},
      {"busy", encode_empty(MessageType::busy, id)},
      {"error", encode(Error{"range is not in the snapshot"}, id)},
      {"status_request", encode_empty(MessageType::status_request, id)},
      {"status", encode(Status{R"({"schema":1,"node":"w1"})"}, id)},
  };
}

std::span<const std::byte> body_of(const std::vector<std::byte>& frame) {
  return std::span(frame).subspan(header_bytes);
}

FrameHeader header_of(const std::vector<std::byte>& frame) {
  const auto header = decode_header(std::span(frame).first<header_bytes>(), max_snapshot_bytes);
  REQUIRE(header.has_value());
  return *header;
}

Decoded<std::vector<std::byte>> transcode(MessageType type, std::uint32_t request_id,
                                          std::span<const std::byte> body) {
  switch (type) {
    case MessageType::hello:
      return again(decode_hello(body), request_id);
    case MessageType::welcome:
      return again(decode_welcome(body), request_id);
    case MessageType::reject:
      return again(decode_reject(body), request_id);
    case MessageType::manifest:
      return again(decode_manifest(body), request_id);
    case MessageType::pull:
      return again(decode_pull(body), request_id);
    case MessageType::status:
      return again(decode_status(body), request_id);
    case MessageType::error:
      return again(decode_error(body), request_id);
    case MessageType::snapshot:
      return transcode_snapshot(request_id, body);
    default:
      break;
  }
  const auto nothing = decode_empty(body);
  if (!nothing) return nothing.error();
  return encode_empty(type, request_id);
}

Decoded<std::vector<std::byte>> transcode(std::span<const std::byte> frame) {
  if (frame.size() < header_bytes) return WireError{Fault::truncated, "header"};
  const auto header = decode_header(frame.first<header_bytes>(), max_snapshot_bytes);
  if (!header) return header.error();
  const auto body = frame.subspan(header_bytes);
  if (body.size() != header->body_bytes) return WireError{Fault::truncated, "body"};
  return transcode(header->type, header->request_id, body);
}

std::vector<std::byte> sealed(std::span<const std::byte> content) {
  std::vector<std::byte> body(content.begin(), content.end());
  unsigned char crc[4];
  boost::endian::store_little_u32(crc, crc32c(content));
  for (const unsigned char byte : crc) body.push_back(std::byte{byte});
  return body;
}

}  // namespace dpwa::wire
