#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/log/log.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/memory_file.h"
#include "test/dpwa/kvserver/raw_store.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

// What a worker makes of a server that breaks the protocol, or whose memory is not what it should
// be: it closes the connection, names the reason and asks again.

namespace dpwa {
namespace {

using kvclient::StoreClient;
using test::FakePeer;
using test::RawSocket;
using Frame = std::vector<std::byte>;
using SteadyClock = std::chrono::steady_clock;

const kvstore::Key key(1);
constexpr std::array<float, 2> sound{3, 4};
constexpr std::uint64_t memory_bytes = 64 << 10;

kvstore::Epoch epoch_with(const kvstore::MemberId& worker, std::uint64_t number = 1) {
  kvstore::Epoch epoch;
  epoch.number = epoch.run = number;
  epoch.servers = {{{"s1", 7}, kvstore::ServerState::up}};
  epoch.workers = {{worker, 0}};
  return epoch;
}

kvstore::Answer value_of(std::span<const float> values) {
  kvstore::Answer answer;
  answer.epoch = 1;
  answer.slice = {key, 0};
  answer.kind = kvstore::AnswerKind::value;
  answer.version = 1;
  const auto bytes = std::as_bytes(values);
  answer.values = std::make_shared<kvstore::Bytes>(bytes.begin(), bytes.end());
  return answer;
}

kvstore::Answer mapped(const MemoryPlace& place) {
  kvstore::Answer answer = value_of({});
  answer.values = nullptr;
  answer.place = place;
  return answer;
}

// A server s1 that answers the first pull as the test says, on its first connection, and every
// other one as it should be. Its door shares the file `memory` under number 0, and a revocation.
class Server {
 public:
  using Evil = std::function<Frame(Server& server, std::uint32_t tag)>;
  explicit Server(Evil evil)
      : evil_(std::move(evil)),
        offer_{same_host::boot_id(), same_host::unique_socket_name()},
        shared_memory_([this](RawSocket& socket) { share(socket); },
                       FakePeer::Listener{test::listen_unix(offer_.socket)}),
        tcp_([this](RawSocket& socket) { serve(socket); }) {
    const auto values = std::as_bytes(std::span(sound));
    std::ranges::copy(values, memory_->data());
  }

  PeerAddress address() const { return {"s1", {"127.0.0.1"}, tcp_.port()}; }
  int connections() const { return tcp_.connections(); }
  // What it has lent.
  void take_back() {
    card_->begin_write();
    card_->end_write();
  }

 private:
  void share(RawSocket& socket) {
    if (!socket.read_frame()) return;
    const auto give = [&](std::uint32_t number, const MemoryFile& file, std::uint64_t bytes) {
      const int descriptors[] = {file.descriptor()};
      test::send_descriptors(socket, wire::encode(wire::Share{number, bytes}, 0), descriptors);
    };
    give(same_host::revocation_number, *card_, 1);
    give(0, *memory_, memory_bytes);
    while (const auto frame = socket.read_frame()) {
      const auto shared = wire::decode_shared(frame->body);
      if (frame->header.type == wire::MessageType::shared && shared && shared->number == 0)
        is_mapped_ = true;
    }
  }

  void serve(RawSocket& socket) {
    const auto hello = socket.read_frame();
    if (!hello) return;
    const auto worker = wire::decode_hello(hello->body);
    if (!worker) return;
    wire::Welcome welcome;
    welcome.node = "s1";
    welcome.incarnation = 7;
    welcome.same_host = same_host::to_text(offer_);
    socket.send(wire::encode(welcome, hello->header.request_id));
    socket.send(
        test::bytes_of(kvstore::EpochNews{epoch_with({worker->node, worker->incarnation})}));
    while (const auto frame = test::read_any_frame(socket)) {
      const std::uint32_t tag = frame->header.request_id;
      if (frame->header.type == wire::MessageType::kv_init) {
        kvstore::Answer created = value_of({});
        created.values = nullptr;
        created.kind = kvstore::AnswerKind::created;
        socket.send(test::bytes_of(created, tag));
      } else if (frame->header.type == wire::MessageType::kv_pull) {
        const bool first = tcp_.connections() == 1;
        test::eventually([&] { return is_mapped_.load(); });
        socket.send(first ? evil_(*this, tag) : test::bytes_of(value_of(sound), tag));
      }
    }
  }

  const Evil evil_;
  const same_host::Offer offer_;
  const std::shared_ptr<MemoryFile> memory_ = MemoryFile::create(memory_bytes);
  const std::shared_ptr<MemoryFile> card_ = MemoryFile::create(1);
  std::atomic<bool> is_mapped_{false};
  FakePeer shared_memory_;
  FakePeer tcp_;
};

TimePoint patience() {
  return SteadyClock::now() + std::chrono::seconds(60);
}

// The worker ends up with the sound value, over another connection if the first had to end.
void check_value(const Server::Evil& evil, const std::string& problem, bool into,
                 Duration longest_silence = kvstore::longest_silence, std::size_t refusals = 0) {
  const test::LogFile log;
  Server server(evil);
  kvclient::StoreClientOptions options;
  options.cluster = "test";
  options.self = {"w1", 5};
  options.servers = {server.address()};
  options.engine.resend = std::chrono::milliseconds(200);
  options.longest_silence = longest_silence;
  StoreClient client(options);
  client.join();
  REQUIRE(client.wait_joined(patience()));
  const kvstore::ValueSpec spec{DType::float32, {2}};
  REQUIRE(client.wait(client.init(key, spec, std::as_bytes(std::span(sound))), patience()));
  std::array<float, 2> target{};
  const auto memory = into ? std::as_writable_bytes(std::span(target)) : std::span<std::byte>();
  const auto ticket = client.pull(key, 0, 0, 0, memory);
  const auto outcome = client.wait(ticket, patience());
  REQUIRE(outcome);
  CAPTURE(problem);
  CHECK((problem.empty() || log.has(problem)));
  CHECK(log.count("not admitted yet") == refusals);
  CHECK(server.connections() == (problem.empty() ? 1 : 2));
  REQUIRE(outcome->values.size() == 1);
  REQUIRE(outcome->values[0]);
  if (!into) {
    REQUIRE(outcome->values[0]->size() == sizeof target);
    std::memcpy(target.data(), outcome->values[0]->data(), sizeof target);
  }
  CHECK(target == sound);
}

}  // namespace

TEST_CASE("a worker gets its value in spite of an answer that breaks the protocol") {
  bool into = false;
  SUBCASE("read to memory of the caller") {
    into = true;
  }
  SUBCASE("read to memory of its own") {}
  CAPTURE(into);
  const auto as_sent = [](kvstore::Message message) {
    return [message = std::move(message)](Server&, std::uint32_t tag) {
      return test::bytes_of(message, tag);
    };
  };
  constexpr std::uint64_t most = ~std::uint64_t{0};
  const std::array<float, 3> longer{1, 2, 3};
  const std::string wrong_length = "which has 8";
  const std::string not_shared = "an answer names memory that was not shared";
  check_value(as_sent(value_of(longer)), wrong_length, into);
  check_value(as_sent(value_of(std::span(longer).first(1))), wrong_length, into);
  check_value(as_sent(value_of({})), wrong_length, into);
  check_value(as_sent(mapped({0, 0, 12, 1})), wrong_length, into);
  check_value(as_sent(mapped({0, 0, memory_bytes, 1})), wrong_length, into);
  check_value(as_sent(mapped({1, 0, 8, 1})), not_shared, into);
  check_value(as_sent(mapped({0, memory_bytes, 8, 1})), not_shared, into);
  check_value(as_sent(mapped({0, most, 8, 1})), not_shared, into);
  check_value(as_sent(mapped({0, memory_bytes - 4, 8, most})), not_shared, into);
  check_value([](Server&, std::uint32_t) { return Frame(64, std::byte{0x5A}); }, "not a dpwa",
              into);
  check_value([](Server&, std::uint32_t) { return wire::encode(wire::Share{1, 8}, 0); }, "type",
              into);
  check_value(as_sent(kvstore::Push{}), "type", into);
  check_value(
      [](Server&, std::uint32_t tag) {
        Frame frame = test::bytes_of(value_of(sound), tag);
        frame.back() ^= std::byte{1};
        return frame;
      },
      "checksum", into);
}

TEST_CASE("a worker gets its value in spite of a connection on which nothing comes any more") {
  const auto silent = [](Server&, std::uint32_t) { return Frame(); };
  check_value(silent, "it has sent nothing for 600 ms, although it was asked", false,
              std::chrono::milliseconds(600));
}

// The worker's beats are acknowledged all the time.
TEST_CASE("a worker gets its value in spite of an answer of which the last bytes never come") {
  for (const bool into : {false, true}) {
    const auto half = [](Server&, std::uint32_t tag) {
      Frame frame = test::bytes_of(value_of(sound), tag);
      frame.resize(frame.size() - sizeof(float));
      return frame;
    };
    check_value(half, "it has sent nothing for 600 ms, although it was asked", into,
                std::chrono::milliseconds(600));
  }
}

TEST_CASE("answers and epochs that cannot be are passed over") {
  const auto then_sound = [](const kvstore::Message& message) {
    return [message](Server&, std::uint32_t tag) {
      Frame both = test::bytes_of(message, tag);
      const Frame value = test::bytes_of(value_of(sound), tag);
      both.insert(both.end(), value.begin(), value.end());
      return both;
    };
  };
  kvstore::Epoch none = epoch_with({"w1", 5}, 2);
  none.servers.clear();
  check_value(then_sound(kvstore::EpochNews{none}), "", false);
  kvstore::Epoch others = epoch_with({"w1", 5}, 2);
  others.servers.push_back({{"s2", 1}, kvstore::ServerState::up});
  check_value(then_sound(kvstore::EpochNews{others}), "", false);
  check_value(then_sound(kvstore::Proposal{1, 1 << 16, none}), "", false);
  for (const auto kind : {kvstore::AnswerKind::created, kvstore::AnswerKind::counted,
                          kvstore::AnswerKind::dropped, kvstore::AnswerKind::received}) {
    kvstore::Answer other = value_of({});
    other.values = nullptr;
    other.kind = kind;
    check_value(then_sound(other), "", false);
  }
  kvstore::Answer unknown = value_of(sound);
  unknown.slice = {kvstore::Key(77), 4};
  check_value(then_sound(unknown), "", true);
}

TEST_CASE("a server that refuses a worker for ever new reasons cannot fill the log") {
  check_value(
      [](Server&, std::uint32_t tag) {
        Frame all;
        for (unsigned i = 0; i < 2 * LogLimiter::most_in_a_period; ++i) {
          kvstore::Answer refusal;
          refusal.kind = kvstore::AnswerKind::name_taken;
          refusal.problem = "reason " + std::to_string(i);
          const Frame one = test::bytes_of(refusal, 0);
          all.insert(all.end(), one.begin(), one.end());
        }
        const Frame value = test::bytes_of(value_of(sound), tag);
        all.insert(all.end(), value.begin(), value.end());
        return all;
      },
      "", false, kvstore::longest_silence, LogLimiter::most_in_a_period);
}

TEST_CASE("values in the memory of a server are read, and once more if it takes its memory back") {
  const kvstore::Answer answer = mapped({0, 0, 8, 1});
  for (const bool into : {true, false}) {
    check_value([&](Server&, std::uint32_t tag) { return test::bytes_of(answer, tag); }, "", into);
    check_value(
        [&](Server& server, std::uint32_t tag) {
          server.take_back();
          return test::bytes_of(answer, tag);
        },
        "took its memory back", into);
  }
}

// Both epochs come before the training thread looks, as after a time in which the process stood
// still.
TEST_CASE("a worker that is left out again before it knows that it takes part asks again") {
  std::atomic<bool> knows{false};
  FakePeer server([&](RawSocket& socket) {
    const auto hello = socket.read_frame();
    if (!hello) return;
    wire::Welcome welcome;
    welcome.node = "s1";
    welcome.incarnation = 7;
    socket.send(wire::encode(welcome, hello->header.request_id));
    const auto tell = [&](std::uint64_t number, bool takes_part) {
      kvstore::Epoch epoch = epoch_with({"w1", 5}, number);
      epoch.run = 1;
      if (!takes_part) epoch.workers.clear();
      socket.send(test::bytes_of(kvstore::EpochNews{epoch}));
    };
    while (const auto beat = test::read_message<kvstore::Beat>(socket)) {
      if (beat->epoch == 0 && beat->joins) {
        tell(1, true);
        tell(2, false);
      } else if (beat->epoch == 2) {
        knows = true;
        if (beat->joins) tell(3, true);
      }
    }
  });
  kvclient::StoreClientOptions options;
  options.cluster = "test";
  options.self = {"w1", 5};
  options.servers = {{"s1", {"127.0.0.1"}, server.port()}};
  StoreClient client(options);
  client.join();
  REQUIRE(test::eventually([&] { return knows.load(); }));
  CHECK_FALSE(client.takes_part());
  REQUIRE(client.wait_joined(patience()));
  CHECK(client.takes_part());
}

}  // namespace dpwa
