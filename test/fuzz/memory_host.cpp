#include "test/fuzz/memory_host.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/endian/conversion.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/reused_memory.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/kv_routes.h"
#include "test/fuzz/kv_body.h"
#include "test/fuzz/require.h"

namespace dpwa::test {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

constexpr std::uint64_t epoch_number = 5;
const kvstore::MemberId caller_id{"w1", 3};
const kvstore::MemberId other_id{"w2", 4};

std::size_t elements_of(unsigned key) {
  return key % 2 == 0 ? 2 : large_bytes / sizeof(float);
}

kvstore::ServerEngineOptions options_of(bool at_each_push) {
  kvstore::ServerEngineOptions options;
  options.shard =
      kvstore::rules_of(at_each_push ? KvstoreType::dist_async : KvstoreType::dist_sync);
  options.shard.memory_bytes = 1 << 20;
  return options;
}

kvstore::Bytes ones(unsigned key) {
  const std::vector<float> numbers(elements_of(key), 1);
  return copy_of(std::as_bytes(std::span(numbers)));
}

kvstore::Bytes sgd() {
  kvstore::OptimizerOptions options;
  options.learning_rate = 0.01;
  const kvstore::OptionsBytes bytes = kvstore::encode(options);
  return {bytes.begin(), bytes.end()};
}

void require_finite(std::span<const std::byte> values) {
  for (std::size_t at = 0; at + sizeof(float) <= values.size(); at += sizeof(float)) {
    float each = 0;
    std::memcpy(&each, values.data() + at, sizeof each);
    DPWA_FUZZ_REQUIRE(std::isfinite(each));
  }
}

}  // namespace

// The connection of w1, over which nothing travels.
class MemoryHost::Caller final : public Responder {
 public:
  Caller(MemoryHost& host, std::uint64_t incarnation) : host_(host) {
    requester_.peer = caller_id.name;
    requester_.incarnation = incarnation;
  }

  const Requester& requester() const override { return requester_; }
  asio::any_io_executor executor() override { return host_.io_.get_executor(); }
  asio::awaitable<bool> send(std::vector<std::byte>) override { co_return !ended; }
  asio::awaitable<bool> refuse(wire::Reject, std::uint32_t) override { co_return false; }
  asio::awaitable<void> begin_reply() override { co_return; }
  asio::awaitable<bool> write(std::span<const asio::const_buffer>) override { co_return !ended; }
  asio::awaitable<std::optional<net::Frame>> receive(net::Expected) override {
    co_return std::nullopt;
  }
  void end_reply() override {}
  session::Outgoing& outgoing() override { return outgoing_; }
  void begin_write() override {
    while (outgoing_.waits()) {
      outgoing_.stage();
      if (!outgoing_.is_staged()) continue;
      host_.written(outgoing_.output().front());
      outgoing_.wrote(outgoing_.staged_bytes());
    }
  }
  std::uint64_t received_bytes() override { return 0; }
  void protocol_error(const std::string&) override {}
  void close() override { ended = true; }

  bool ended = false;
  bool told = false;  // that the connection is over

 private:
  MemoryHost& host_;
  Requester requester_;
  session::Outgoing outgoing_;
};

MemoryHost::MemoryHost(bool at_each_push)
    : local_("test", "s1", 7, {"w1", "w2"}),
      shared_memory_(io_, local_),
      engine_(options_of(at_each_push), {"s1", 7}, {"s1"}, now_),
      handler_(
          {"s1"},
          [this](const kvstore::MemberId& from, std::uint64_t tag, kvstore::Message message) {
            engine_.receive(from, tag, std::move(message), now_);
            deliver();
          },
          &shared_memory_) {
  share_reused_memory();
  DPWA_FUZZ_REQUIRE(shared_memory_.listen());
  shared_memory_.serve();
  kvstore::Epoch epoch;
  epoch.number = epoch.run = epoch_number;
  epoch.servers = {{{"s1", 7}, kvstore::ServerState::up}};
  epoch.workers = {{caller_id, 0}, {other_id, 0}};
  engine_.receive(caller_id, 0, kvstore::EpochNews{epoch}, now_);
  for (unsigned key = 0; key < 2; ++key) {
    const kvstore::ValueSpec spec{DType::float32, {elements_of(key)}};
    for (const auto& worker : {caller_id, other_id})
      engine_.receive(worker, 1, kvstore::Init{epoch_number, slice(key), spec, ones(key)}, now_);
  }
  callers_.push_back(std::make_unique<Caller>(*this, caller_id.incarnation));
  run();
}

MemoryHost::~MemoryHost() {
  for (const auto& caller : callers_) disconnect(*caller);
  shared_memory_.stop();
  io_.poll();
}

kvstore::Push MemoryHost::with_terms(kvstore::Push push, unsigned key, unsigned terms) {
  constexpr std::array<double, 4> weights = {1, 0, 1e-300, 1e300};
  push.epoch = epoch_number;
  push.slice = slice(key);
  push.weight = weights[terms % weights.size()];
  push.merge = (terms & 4) != 0 ? kvstore::Merge::mean : kvstore::Merge::sum;
  push.wants_value = (terms & 8) != 0;
  if ((terms & 16) != 0) push.optimizer = sgd();
  return push;
}

FileDescriptor MemoryHost::connect() {
  const auto offer = same_host::parse_offer(shared_memory_.offer());
  DPWA_FUZZ_REQUIRE(offer.has_value());
  auto socket = ipc::connect_to(offer->socket);
  return socket ? std::move(*socket) : FileDescriptor();
}

void MemoryHost::ask(kvstore::Message message) {
  if (auto* pull = std::get_if<kvstore::Pull>(&message)) pull->epoch = epoch_number;
  const wire::KvFrame frame = wire::encode(message, 1);
  request(wire::type_of(message), {frame.head.begin() + wire::header_bytes, frame.head.end()});
}

void MemoryHost::ask_anything(unsigned type, std::span<const std::byte> content) {
  const auto wanted = static_cast<MessageType>(type);
  const auto accepted = handler_.requests(callers_.back()->requester());
  if (std::ranges::find(accepted, wanted, &wire::TypeBound::type) == accepted.end()) return;
  if (wanted == MessageType::kv_read) return request(wanted, {content.begin(), content.end()});
  request(wanted, kv_body(content));
}

void MemoryHost::read(std::uint64_t number) {
  const auto frame = wire::encode_kv_read(number);
  request(MessageType::kv_read, {frame.begin() + wire::header_bytes, frame.end()});
  lent_.erase(lent_.begin(), lent_.upper_bound(number));
}

void MemoryHost::request(MessageType type, std::vector<std::byte> body) {
  Caller& caller = *callers_.back();
  if (caller.ended) return;
  net::Frame frame{{type, 1, body.size()}, {}, {}};
  std::size_t head = body.size();
  if (type != MessageType::kv_read && body.size() >= wire::kv_head_length_bytes) {
    std::array<unsigned char, wire::kv_head_length_bytes> length;
    std::memcpy(length.data(), body.data(), length.size());
    head = std::min<std::size_t>(head, boost::endian::load_little_u32(length.data()));
  }
  frame.payload = copy_of(std::span(body).subspan(head));
  body.resize(head);
  frame.body = std::move(body);
  asio::co_spawn(io_, answer(std::move(frame), caller), net::rethrow);
}

asio::awaitable<void> MemoryHost::answer(net::Frame request, Caller& caller) {
  const bool goes_on = co_await handler_.answer(std::move(request), caller);
  if (!goes_on) caller.ended = true;
}

void MemoryHost::reconnect(unsigned incarnation) {
  const auto process = static_cast<std::uint64_t>(incarnation % 8);
  callers_.back()->ended = true;
  callers_.push_back(std::make_unique<Caller>(*this, process));
}

void MemoryHost::other_push(unsigned key) {
  kvstore::Push push;
  push.step = steps_[key % 2]++;
  push.values = ones(key);
  push = with_terms(std::move(push), key, 8 | 16);
  engine_.receive(other_id, 1, std::move(push), now_);
  deliver();
}

void MemoryHost::run() {
  now_ += std::chrono::milliseconds(1);
  engine_.tick(now_);
  deliver();
  while (io_.poll() > 0) {
  }
  for (const auto& caller : callers_) {
    if (caller->ended) disconnect(*caller);
  }
  while (io_.poll() > 0) {
  }
  for (const auto& [number, lent] : lent_) DPWA_FUZZ_REQUIRE(crc32c(lent.values) == lent.checksum);
}

void MemoryHost::disconnect(Caller& caller) {
  caller.ended = true;
  if (std::exchange(caller.told, true)) return;
  lent_.clear();  // may change from now on
  handler_.connection_closed(caller);
}

void MemoryHost::deliver() {
  for (kvstore::Outgoing& each : engine_.take()) {
    const auto* answer = std::get_if<kvstore::Answer>(&each.message);
    if (answer != nullptr && answer->values) require_finite(*answer->values);
    handler_.send(each.to, each.tag, std::move(each.message));
  }
}

// Notes what the caller may read from now on.
void MemoryHost::written(std::span<const std::byte> head) {
  const auto header = wire::decode_header(head.first<wire::header_bytes>(), 0,
                                          wire::kv_types(wire::KvRoute::server_to_worker));
  DPWA_FUZZ_REQUIRE(header.has_value());
  if (header->type != MessageType::kv_answer_mapped) return;
  const auto message =
      wire::decode_kv(MessageType::kv_answer_mapped, head.subspan(wire::header_bytes));
  DPWA_FUZZ_REQUIRE(message.has_value());
  const auto& place = std::get<kvstore::Answer>(*message).place;
  DPWA_FUZZ_REQUIRE(place && shared_arena(place->memory) != nullptr);
  DPWA_FUZZ_REQUIRE(place->offset <= arena_bytes && place->bytes <= arena_bytes - place->offset);
  const auto values = shared_arena(place->memory)->bytes({place->offset, place->bytes});
  require_finite(values);
  lent_[place->mark] = {values, crc32c(values)};
}

}  // namespace dpwa::test
