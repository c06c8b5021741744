#include "test/dpwa/wire/samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/view_messages.h"

namespace dpwa::wire {
namespace {

// Of the encoded snapshots: two dtypes that they shorten in one way each, and one that they do not.
const Manifest& encoded_manifest() {
  static const Manifest manifest({{"w", DType::float32, BlendRule::interpolate, {1030}},
                                  {"h", DType::float16, BlendRule::interpolate, {20}},
                                  {"n", DType::int64, BlendRule::maximum, {1}}});
  return manifest;
}

ByteRange part_of(const SnapshotReplyHead& head, std::uint64_t at) {
  return {head.offset + at, std::min<std::uint64_t>(head.chunk_bytes, head.length - at)};
}

void append_chunk(std::vector<std::byte>& frame, std::span<const std::byte> payload) {
  const auto header =
      encode_chunk_header({static_cast<std::uint32_t>(payload.size()), crc32c(payload)});
  frame.insert(frame.end(), header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
}

// Head, and chunks whose payload is 0, 1, 2, ... modulo 251.
std::vector<std::byte> snapshot_frame(const SnapshotReplyHead& head) {
  std::vector<std::byte> frame = encode(head, request_id);
  std::vector<std::byte> payload(head.length);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i % 251);
  for (std::uint64_t at = 0; at < head.length; at += head.chunk_bytes) {
    append_chunk(frame, std::span(payload).subspan(at, part_of(head, at).length));
  }
  return frame;
}

// Head, and chunks of a snapshot that holds 0, 1/8, 2/8, ... and 1, 2, 3, ... as patterns of fp16.
std::vector<std::byte> encoded_frame(Codec codec) {
  const Manifest& manifest = encoded_manifest();
  std::vector<std::byte> snapshot(manifest.total_bytes());
  auto* bytes = reinterpret_cast<unsigned char*>(snapshot.data());
  for (std::size_t i = 0; i < 1030; ++i) {
    const auto value = static_cast<float>(i) / 8 * (i % 2 == 0 ? 1.0F : -1.0F);
    boost::endian::endian_store<float, 4, boost::endian::order::little>(bytes + 4 * i, value);
  }
  for (std::size_t i = 0; i < 20; ++i) {
    const auto pattern = static_cast<std::uint16_t>(0x3C00 + i);
    boost::endian::store_little_u16(bytes + manifest.offset_of(1) + 2 * i, pattern);
  }
  boost::endian::store_little_u64(bytes + manifest.offset_of(2), 0x0102030405060708);

  SnapshotReplyHead head = sample_head();
  head.codec = codec;
  head.length = manifest.total_bytes() - head.offset;
  const ByteRange range{head.offset, head.length};
  const auto payload_sum = payload_bytes(manifest, codec, range, head.chunk_bytes);
  std::vector<std::byte> frame = encode(head, request_id, payload_sum);
  for (std::uint64_t at = 0; at < head.length; at += head.chunk_bytes) {
    const ByteRange part = part_of(head, at);
    std::vector<std::byte> payload(payload_bytes(manifest, codec, part));
    encode_chunk(manifest, codec, snapshot, part, payload);
    append_chunk(frame, payload);
  }
  return frame;
}

// Encoded, the range must be one of the manifest above and the length what that makes of it.
bool is_of_encoded_manifest(const SnapshotReplyHead& head, std::size_t body_bytes) {
  const ByteRange range{head.offset, head.length};
  const std::uint64_t total = encoded_manifest().total_bytes();
  return head.offset <= total && head.length <= total - head.offset &&
         holds_whole_elements(encoded_manifest(), head.codec, range) &&
         body_bytes == snapshot_body_bytes(
                           head.length, head.chunk_bytes,
                           payload_bytes(encoded_manifest(), head.codec, range, head.chunk_bytes));
}

Decoded<std::vector<std::byte>> transcode_snapshot(std::uint32_t request_id,
                                                   std::span<const std::byte> body) {
  if (body.size() < snapshot_head_bytes) return WireError{Fault::truncated, "head"};
  const auto head = decode_snapshot_head(body.first<snapshot_head_bytes>(), body.size());
  if (!head) return head.error();
  if (head->codec != Codec::raw && !is_of_encoded_manifest(*head, body.size()))
    return WireError{Fault::bad_length, "range or length"};
  const std::uint64_t chunks = (head->length + head->chunk_bytes - 1) / head->chunk_bytes;
  std::vector<std::byte> frame =
      encode(*head, request_id, body.size() - snapshot_head_bytes - chunks * chunk_header_bytes);
  auto rest = body.subspan(snapshot_head_bytes);
  for (std::uint64_t at = 0; at < head->length; at += head->chunk_bytes) {
    const auto size = static_cast<std::uint32_t>(
        payload_bytes(encoded_manifest(), head->codec, part_of(*head, at)));
    if (rest.size() < chunk_header_bytes + size) return WireError{Fault::truncated, "chunk"};
    const auto chunk = decode_chunk_header(rest.first<chunk_header_bytes>(), size);
    if (!chunk) return chunk.error();
    const auto payload = rest.subspan(chunk_header_bytes, size);
    if (chunk->crc != crc32c(payload)) return WireError{Fault::bad_checksum, "payload"};
    append_chunk(frame, payload);
    rest = rest.subspan(chunk_header_bytes + size);
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
  return {"w2",
          7,
          1 << 1,
          NodeState::ready,
          0xA1B2C3D4E5F60718,
          3.5,
          "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/dpwa-4711-00112233445566778899aabbccddeeff"};
}

SnapshotReplyHead sample_head() {
  SnapshotReplyHead head;
  head.progress = {.version = 42, .lineage = 0xA1B2C3D4E5F60718, .clock = 41.5, .loss = 0.25};
  head.progress.weight = 0.75;
  head.progress.time_us = 1700000000123456;
  head.offset = 64;
  head.length = 4096 + 100;
  head.chunk_bytes = min_chunk_bytes;
  return head;
}

Mapped sample_mapped() {
  Mapped mapped;
  mapped.progress = sample_head().progress;
  mapped.place = {2, 64, 4196, 84};
  return mapped;
}

MemberExchange sample_members() {
  MemberExchange message;
  message.total = 4;
  message.digest = 0x0102030405060708;
  message.part = 2;
  message.claims = {
      {"w1", {"10.0.0.1", "fe80::1"}, 7001, 0x1112131415161718, 0, MemberStatus::alive},
      {"w2", {"10.0.0.2"}, 7002, 3, 1, MemberStatus::suspect},
      {"w3", {"::1"}, 65535, 4, max_refutation, MemberStatus::dead},
      {"w4", {"127.0.0.1"}, 1, 5, 2, MemberStatus::left}};
  return message;
}

std::vector<Sample> samples() {
  Hello observer{.role = Role::observer, .capabilities = 0, .cluster = "digits", .node = ""};
  SnapshotReplyHead last = sample_head();
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
  Pull encoded_pull = pull;
  encoded_pull.codec = Codec::int8;
  Mapped mapped_final = sample_mapped();
  mapped_final.progress = last.progress;
  mapped_final.state = NodeState::finished;
  Welcome without_offer = sample_welcome();
  without_offer.same_host.clear();
  const std::string reason =
      "tensor 3 'fc2.weight' is float32[10,128] here and float32[10,256] there";
  std::vector<Sample> all = {
      {"hello_node", encode(sample_hello(), request_id)},
      {"hello_observer", encode(observer, request_id)},
      {"welcome", encode(sample_welcome(), request_id)},
      {"welcome_without_offer", encode(without_offer, request_id)},
      {"reject", encode(Reject{RejectCode::model, reason}, request_id)},
      {"manifest_request", encode_empty(MessageType::manifest_request, request_id)},
      {"manifest", encode(sample_manifest(), request_id)},
      {"pull", encode(pull, request_id)},
      {"pull_full", encode(full, request_id)},
      {"pull_final_average", encode(last_pull, request_id)},
      {"pull_int8", encode(encoded_pull, request_id)},
      {"snapshot", snapshot_frame(sample_head())},
      {"snapshot_fp16", encoded_frame(Codec::fp16)},
      {"snapshot_bf16", encoded_frame(Codec::bf16)},
      {"snapshot_int8", encoded_frame(Codec::int8)},
      {"snapshot_final_empty", snapshot_frame(last)},
      {"not_modified", encode_empty(MessageType::not_modified, request_id)},
      {"not_ready", encode_empty(MessageType::not_ready, request_id)},
      {"not_fresh", encode_empty(MessageType::not_fresh, request_id)},
      {"busy", encode_empty(MessageType::busy, request_id)},
      {"error", encode(Error{"range is not in the snapshot"}, request_id)},
      {"status_request", encode_empty(MessageType::status_request, request_id)},
      {"mapped", encode(sample_mapped(), request_id)},
      {"mapped_final", encode(mapped_final, request_id)},
      {"members", encode(sample_members(), request_id)},
      {"release", encode(Release{true}, request_id)},
      {"release_unread", encode(Release{false}, request_id)},
      {"share", encode(Share{7, 32 << 20}, request_id)},
      {"shared", encode(Shared{7}, request_id)},
      {"kv_read", encode_kv_read(0x0102030405060708)},
      {"trace_request", encode(TraceRequest{0x0102030405060708, 5000}, request_id)},
      {"status", encode(Status{R"({"schema":1,"node":"w1"})"}, request_id)},
  };
  for (Sample& sample : kv_samples()) all.push_back(std::move(sample));
  for (Sample& sample : view_samples()) all.push_back(std::move(sample));
  return all;
}

std::vector<Sample> view_samples() {
  using namespace members;
  const ProcessId from{"w2", 3, 0x2122232425262728};
  const Base base{5, 0x3132333435363738};
  const Ballot ballot{7, {"w1", 1, 0x11}};
  const View view{
      .run = 0x4142434445464748,
      .number = 6,
      .before = base.digest,
      .settings = 9,
      .members = {{{"w1", 1, 0x11}, false, true, {40, {42, 44}}}, {from, true, false, {}}}};
  Promise promise;
  promise.base = base;
  promise.ballot = promise.accepted = ballot;
  promise.voter = from;
  promise.granted = promise.lives = true;
  promise.value = view;
  promise.done.through = 41;
  promise.done.beyond = {43};
  promise.hears = {{"w3", 1, 2}, {"w4", 1, 2}};
  const auto frame = [&](const GroupMessage& message) { return encode(from, message, request_id); };
  return {
      {"view_prepare", frame(Prepare{base, ballot})},
      {"view_promise", frame(promise)},
      {"view_accept", frame(Accept{base, ballot, view})},
      {"view_accepted", frame(Accepted{base, ballot, from})},
      {"view_installed", frame(Installed{view})},
      {"view_ask", frame(AskView{base})},
      {"view_apply", frame(Apply{base, 9, true})},
      {"view_ready", frame(Ready{base, 44, 0x5152535455565758})},
      {"view_leave", frame(Leave{base})},
      {"view_refuse", frame(Refuse{base})},
      {"view_beat", frame(Beat{base, true})},
      {"view_entry", frame(Entry{0x6162636465666768, "rank_1", {0x00, 0xff}})},
      {"view_terms", frame(Terms{{{"--seed", "1"}, {"model", ""}}})},
  };
}

std::vector<TypeBound> bounds() {
  std::vector<TypeBound> all = kv_bounds();
  all.push_back({MessageType::view, max_view_body_bytes});
  return all;
}

std::span<const std::byte> body_of(const std::vector<std::byte>& frame) {
  return std::span(frame).subspan(header_bytes);
}

FrameHeader header_of(const std::vector<std::byte>& frame) {
  const auto header =
      decode_header(std::span(frame).first<header_bytes>(), max_snapshot_bytes, bounds());
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
    case MessageType::trace_request:
      return again(decode_trace_request(body), request_id);
    case MessageType::status:
      return again(decode_status(body), request_id);
    case MessageType::error:
      return again(decode_error(body), request_id);
    case MessageType::view: {
      const auto frame = decode_view(body);
      if (!frame) return frame.error();
      return encode(frame->from, frame->message, request_id);
    }
    case MessageType::mapped:
      return again(decode_mapped(body), request_id);
    case MessageType::release:
      return again(decode_release(body), request_id);
    case MessageType::share:
      return again(decode_share(body), request_id);
    case MessageType::shared:
      return again(decode_shared(body), request_id);
    case MessageType::members:
      return again(decode_members(body), request_id);
    case MessageType::kv_read: {
      const auto number = decode_kv_read(body);
      if (!number) return number.error();
      return encode_kv_read(*number, request_id);
    }
    case MessageType::snapshot:
      return transcode_snapshot(request_id, body);
    default:
      if (type >= MessageType::kv_init) return transcode_kv(type, request_id, body);
      break;
  }
  const auto nothing = decode_empty(body);
  if (!nothing) return nothing.error();
  return encode_empty(type, request_id);
}

Decoded<std::vector<std::byte>> transcode(std::span<const std::byte> frame) {
  if (frame.size() < header_bytes) return WireError{Fault::truncated, "header"};
  const auto header = decode_header(frame.first<header_bytes>(), max_snapshot_bytes, bounds());
  if (!header) return header.error();
  const auto body = frame.subspan(header_bytes);
  if (body.size() != header->body_bytes) return WireError{Fault::truncated, "body"};
  return transcode(header->type, header->request_id, body);
}

bool survives(std::span<const std::byte> frame) {
  const auto again = transcode(frame);
  return again && std::ranges::equal(*again, frame);
}

std::vector<std::byte> sealed(std::span<const std::byte> content) {
  std::vector<std::byte> body(content.begin(), content.end());
  unsigned char crc[4];
  boost::endian::store_little_u32(crc, crc32c(content));
  for (const unsigned char byte : crc) body.push_back(std::byte{byte});
  return body;
}

}  // namespace dpwa::wire
