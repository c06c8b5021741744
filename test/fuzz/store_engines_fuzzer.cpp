// Messages of the store at a server and at a worker that are members of an epoch: the engines
// behind the connections. No sequence of messages may crash them, and what they answer can be
// encoded.
//
// The first byte: bit 0 the side (0 server, 1 worker), bit 1 updates at each push, bit 2 replicas.
// Then records: u8 sender, of the members below; u8 type; u16 length; so many bytes that become the
// body, as kv_body() has them.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/kvclient/operations.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/worker_engine.h"
#include "dpwa/wire/kv_messages.h"
#include "test/fuzz/kv_body.h"
#include "test/fuzz/require.h"

using namespace dpwa;
using kvstore::MemberId;

namespace {

constexpr std::uint64_t epoch_number = 5;
constexpr int keys = 4;  // 0, 1, ...; two numbers each
const kvstore::ValueSpec spec{DType::float32, {2}};
const std::array<float, 2> numbers{1, 2};

struct Record {
  std::size_t sender = 0;
  kvstore::Message message;
};

// Until the input is used up, or is no message.
class Records {
 public:
  explicit Records(std::span<const std::byte> rest) : rest_(rest) {}

  std::optional<Record> next() {
    while (rest_.size() >= 4) {
      const auto byte = [this](std::size_t at) { return std::to_integer<unsigned>(rest_[at]); };
      const std::size_t sender = byte(0);
      const auto type = static_cast<wire::MessageType>(byte(1));
      const std::size_t length = std::min<std::size_t>(byte(2) | byte(3) << 8, rest_.size() - 4);
      const auto content = rest_.subspan(4, length);
      rest_ = rest_.subspan(4 + length);
      auto message = wire::decode_kv(type, test::kv_body(content));
      if (message) return Record{sender, std::move(*message)};
    }
    return std::nullopt;
  }

 private:
  std::span<const std::byte> rest_;
};

kvstore::Epoch epoch_of_all() {
  kvstore::Epoch epoch;
  epoch.number = epoch.run = epoch_number;
  epoch.servers = {{{"s1", 7}, kvstore::ServerState::up}, {{"s2", 9}, kvstore::ServerState::up}};
  epoch.workers = {{{"w1", 3}, 0}, {{"w2", 4}, 0}};
  return epoch;
}

void check(const std::vector<kvstore::Outgoing>& messages) {
  for (const auto& each : messages) {
    const auto frame = wire::encode(each.message, static_cast<std::uint32_t>(each.tag));
    DPWA_FUZZ_REQUIRE(!frame.head.empty());
  }
}

// A push of memory that its worker shares, as the server finds it.
void lend(kvstore::Message& message) {
  constexpr std::size_t bytes = 64;
  static const std::shared_ptr<MemoryFile> memory = MemoryFile::create(bytes);
  auto* push = std::get_if<kvstore::Push>(&message);
  if (push == nullptr || !push->place) return;
  const MemoryPlace place = *std::exchange(push->place, std::nullopt);
  if (place.offset > bytes || place.bytes > bytes - place.offset) return;
  push->lent = {memory->bytes({place.offset, place.bytes}), memory, memory,
                memory->generation() + place.mark % 2};
}

void at_server(Records records, bool at_each_push, bool replicas) {
  const std::array<MemberId, 5> members{{{"w1", 3}, {"w2", 4}, {"s2", 9}, {"w1", 2}, {"w3", 1}}};
  kvstore::ServerEngineOptions options;
  const auto type = at_each_push ? KvstoreType::dist_async : KvstoreType::dist_sync;
  options.shard = kvstore::rules_of(type, 0, replicas);
  options.shard.memory_bytes = 1 << 20;
  TimePoint now{};
  kvstore::ServerEngine engine(options, {"s1", 7}, {"s1", "s2"}, now);
  engine.receive({"s2", 9}, 0, kvstore::EpochNews{epoch_of_all()}, now);
  for (int key = 0; key < keys; ++key) {
    for (const auto& worker : {members[0], members[1]}) {
      kvstore::Init init{epoch_number, {kvstore::Key(key), 0}, spec, {}};
      const auto bytes = std::as_bytes(std::span(numbers));
      init.values.assign(bytes.begin(), bytes.end());
      engine.receive(worker, 1, std::move(init), now);
    }
  }
  check(engine.take());
  for (std::uint64_t tag = 1; auto record = records.next(); ++tag) {
    lend(record->message);
    engine.receive(members[record->sender % members.size()], tag % 8, std::move(record->message),
                   now);
    now += std::chrono::milliseconds(100);
    engine.tick(now);
    check(engine.take());
  }
}

// What the client does with what happened.
void follow(kvstore::WorkerEngine& engine, kvclient::Operations& operations) {
  for (auto& event : engine.take_events()) {
    std::visit(
        [&](auto& content) {
          using Content = std::decay_t<decltype(content)>;
          const auto holds = [](const auto&, auto) { return false; };
          if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Joined> ||
                        std::is_same_v<Content, kvstore::WorkerEngine::AtEnd> ||
                        std::is_same_v<Content, kvstore::WorkerEngine::RunOver> ||
                        std::is_same_v<Content, kvstore::WorkerEngine::Refused> ||
                        std::is_same_v<Content, kvstore::WorkerEngine::Renumbered>) {
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::LeftOut>) {
            operations.leave_out(holds);
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Pushed>) {
            operations.handle(content, false);
          } else {
            operations.handle(content);
          }
        },
        event);
  }
  operations.take_done();
}

void at_worker(Records records, bool at_each_push, bool replicas) {
  const std::array<MemberId, 3> members{{{"s1", 7}, {"s2", 9}, {"s1", 6}}};
  kvstore::WorkerOptions options;
  options.merged = !at_each_push;
  options.replicas = replicas;
  TimePoint now{};
  kvstore::WorkerEngine engine(options, {"w1", 3}, {"s1", "s2"});
  kvclient::Operations operations;
  engine.receive(members[0], 0, kvstore::EpochNews{epoch_of_all()}, now);
  std::array<std::byte, sizeof numbers> target{};
  kvclient::Ticket ticket = 1;
  for (int key = 0; key < keys; ++key) {
    using Kind = kvclient::Operations::Kind;
    const auto bytes = std::as_bytes(std::span(numbers));
    operations.begin(ticket++, Kind::init, key, 0, 1, false);
    engine.init(key, spec, bytes);
    kvstore::Push push;
    push.slice = {kvstore::Key(key), 0};
    push.wants_value = true;
    push.values.assign(bytes.begin(), bytes.end());
    operations.begin(ticket++, Kind::push, key, 0, {std::span<std::byte>(target)});
    engine.push(std::move(push));
    operations.begin(ticket++, Kind::pull, key, 1, 1, true);
    engine.pull({0, {kvstore::Key(key), 0}, 1, 0});
  }
  check(engine.take(now));
  while (auto record = records.next()) {
    // The link closes over an answer of another length.
    const auto* answer = std::get_if<kvstore::Answer>(&record->message);
    const bool wrong = answer != nullptr && answer->values &&
                       answer->values->size() != engine.bytes_of(answer->slice).value_or(0);
    if (wrong) continue;
    engine.receive(members[record->sender % members.size()], record->sender / members.size(),
                   std::move(record->message), now);
    follow(engine, operations);
    now += std::chrono::milliseconds(100);
    engine.tick(now);
    check(engine.take(now));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Records records(std::as_bytes(std::span(data + 1, size - 1)));
  const bool at_each_push = (data[0] & 2) != 0;
  const bool replicas = (data[0] & 4) != 0;
  if ((data[0] & 1) == 0) {
    at_server(records, at_each_push, replicas);
  } else {
    at_worker(records, at_each_push, replicas);
  }
  return 0;
}
