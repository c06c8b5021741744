#include "dpwa/wire/kv_messages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("the golden file covers every message of the store") {
  const auto all = samples();
  for (const TypeBound& bound : kv_bounds()) {
    CAPTURE(static_cast<unsigned>(bound.type));
    CHECK(std::ranges::any_of(
        all, [&](const Sample& sample) { return header_of(sample.frame).type == bound.type; }));
  }
}

TEST_CASE("a message of the store is refused where no handler takes it") {
  for (const Sample& sample : kv_samples()) {
    const auto header =
        decode_header(std::span(sample.frame).first<header_bytes>(), max_snapshot_bytes);
    CHECK(fault_of(header) == Fault::bad_type);
  }
}

TEST_CASE("a payload is sent from the memory of the message, and lent memory as values") {
  const kvstore::Bytes memory(1000, std::byte{7});
  kvstore::Push push;
  push.slice = {"w", 0};
  push.lent = {memory};
  const kvstore::Message message = push;
  const KvFrame frame = encode(message, 1);
  REQUIRE(frame.payload.size() == 1);
  CHECK(frame.payload[0].data() == memory.data());
  std::vector<std::byte> whole = frame.head;
  whole.insert(whole.end(), memory.begin(), memory.end());
  CHECK(header_of(whole).body_bytes == whole.size() - header_bytes);
  const auto again = decode_kv(MessageType::kv_push, body_of(whole));
  REQUIRE(again.has_value());
  CHECK(std::get<kvstore::Push>(*again).values == memory);
  CHECK(std::get<kvstore::Push>(*again).lent.bytes.empty());
}

TEST_CASE("frames that leave together are the bytes of each, and long payloads are not copied") {
  const kvstore::Bytes short_values(100, std::byte{3});
  const kvstore::Bytes long_values(20'000, std::byte{7});
  kvstore::Push push;
  push.slice = {"w", 0};
  push.lent = {long_values};
  const kvstore::Message messages[] = {
      kvstore::Init{5, {"v", 0}, {DType::float32, {25}}, short_values}, push,
      kvstore::Pull{5, {"w", 0}, 1, 0}, kvstore::Pull{5, {"v", 0}, 1, 0}};
  std::vector<std::byte> expected;
  KvFrames frames;
  for (std::uint32_t id = 0; const kvstore::Message& message : messages) {
    const KvFrame frame = encode(message, id);
    expected.insert(expected.end(), frame.head.begin(), frame.head.end());
    for (const auto& part : frame.payload)
      expected.insert(expected.end(), part.begin(), part.end());
    CHECK(frames.has_room_for(message));
    frames.add(message, id++);
  }
  const auto parts = frames.parts();
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].data() == long_values.data());
  std::vector<std::byte> together;
  for (const auto& part : parts) together.insert(together.end(), part.begin(), part.end());
  CHECK(together == expected);
  CHECK(frames.bytes() == expected.size());

  kvstore::Push wrong = push;
  wrong.optimizer.resize(1);
  CHECK_THROWS_AS(frames.add(kvstore::Message(wrong), 9), std::invalid_argument);
  CHECK(frames.bytes() == expected.size());
  const kvstore::Bytes slice(KvFrames::usual_bytes);
  push.lent = {slice};
  CHECK_FALSE(frames.has_room_for(push));
  frames.clear();
  CHECK(frames.empty());
  CHECK(frames.has_room_for(push));
}

TEST_CASE("head and payload are decoded one after the other") {
  for (const Sample& sample : kv_samples()) {
    CAPTURE(sample.name);
    const auto body = body_of(sample.frame);
    const auto bytes = kv_head_bytes(body.first<kv_head_length_bytes>(), body.size());
    REQUIRE(bytes.has_value());
    const auto head = decode_kv_head(header_of(sample.frame).type, body.first(*bytes));
    REQUIRE(head.has_value());
    CHECK(head->payload_bytes == body.size() - *bytes);
    CHECK(with_payload(*head, body.subspan(*bytes)).has_value());
    if (head->payload_bytes == 0) continue;
    CHECK(fault_of(with_payload(*head, body.subspan(*bytes + 1))) == Fault::bad_length);
    KvHead wrong = *head;
    ++wrong.payload_crc;
    CHECK(fault_of(with_payload(wrong, body.subspan(*bytes))) == Fault::bad_checksum);
  }
}

TEST_CASE("the head of a message is not longer than its body, nor shorter than its tail") {
  std::array<std::byte, kv_head_length_bytes> start{};
  for (const unsigned length : {0, 15, 101, 1 << 22}) {
    start = {static_cast<std::byte>(length & 255), static_cast<std::byte>(length >> 8 & 255),
             static_cast<std::byte>(length >> 16 & 255), std::byte{0}};
    CHECK(fault_of(kv_head_bytes(start, 100)) == Fault::bad_length);
  }
}

TEST_CASE("a message of the store that nobody would accept is not encoded") {
  kvstore::Init unknown{1, {"w", 0}, {DType::int64, {2}}, {}};
  CHECK_THROWS_AS(encode(unknown, 1), std::invalid_argument);
  kvstore::Pull nameless{1, {"", 0}, 0, 0};
  CHECK_THROWS_AS(encode(nameless, 1), std::invalid_argument);
  kvstore::Push strange;
  strange.optimizer = {std::byte{1}, std::byte{2}};
  CHECK_THROWS_AS(encode(strange, 1), std::invalid_argument);
  kvstore::EpochNews crowd;
  crowd.epoch.workers.resize(max_kv_workers + 1, {{"w", 1}, 0});
  CHECK_THROWS_AS(encode(crowd, 1), std::invalid_argument);
}

TEST_CASE("a weight that is not finite is refused") {
  for (const double weight :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0}) {
    kvstore::Push push;
    push.slice = {"w", 0};
    push.weight = weight;
    const auto frame = encode(push, 1).head;
    CHECK(fault_of(decode_kv(MessageType::kv_push, body_of(frame))) == Fault::bad_value);
  }
}

TEST_CASE("the largest epoch fits into the bound of a body") {
  kvstore::EpochNews news;
  const std::string name(max_name_bytes, 'n');
  news.epoch.servers.resize(max_kv_servers, {{name, 1}, kvstore::ServerState::up});
  news.epoch.workers.resize(max_kv_workers, {{name, 1}, 0});
  const auto frame = encode(news, 1).head;
  CHECK(body_of(frame).size() <= max_kv_body_bytes(MessageType::kv_epoch));
  CHECK(decode_kv(MessageType::kv_epoch, body_of(frame)).has_value());
}

}  // namespace
}  // namespace dpwa::wire
