#include "dpwa/net/request_handler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/endian/conversion.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/stream.h"
#include "dpwa/wire/kv_messages.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// A handler of its own, with message types that this version of the protocol does not have, served
// by the node's sessions beside gossip's.

namespace dpwa {
namespace {

namespace asio = boost::asio;
using net::Failure;
using test::ServedNode;
using wire::MessageType;

constexpr auto get = static_cast<MessageType>(100);  // a name
constexpr auto value = static_cast<MessageType>(101);
constexpr auto count = static_cast<MessageType>(102);  // answered by a KV_BARRIER with the count
constexpr std::size_t longest_name = 32;
constexpr std::size_t longest_value = std::size_t{8} << 20;

using Bytes = std::vector<std::byte>;

Bytes frame_of(MessageType type, std::uint32_t id, std::span<const std::byte> body) {
  const auto header = wire::encode_header({type, id, body.size() + 4});
  Bytes frame(header.begin(), header.end());
  frame.insert(frame.end(), body.begin(), body.end());
  frame.resize(frame.size() + 4);
  boost::endian::store_little_u32(reinterpret_cast<unsigned char*>(&*(frame.end() - 4)),
                                  crc32c(body));
  return frame;
}

std::string text_of(const net::Frame& frame) {
  return {reinterpret_cast<const char*>(frame.body.data()), frame.body.size() - 4};
}

using Texts = std::map<std::string, std::string>;

class KeyHandler : public RequestHandler {
 public:
  KeyHandler(const Texts& texts, std::atomic<std::size_t>& sending)
      : texts_(texts), sending_(sending) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override {
    if (requester.peer.empty()) return {};  // nodes only
    return {{get, longest_name + 4}, {count, 4}};
  }
  bool in_numbers() const override { return true; }

  // COUNT, whose answer waits for nothing.
  std::optional<bool> take_at_once(net::Frame& request, Responder& responder) override {
    if (request.header.type != count) return std::nullopt;
    kvstore::Barrier counted;
    counted.count = ++counted_;
    responder.outgoing().add(counted, request.header.request_id);
    responder.begin_write();
    return true;
  }
  asio::awaitable<bool> answer(net::Frame request, Responder& responder) override {
    const std::uint32_t id = request.header.request_id;
    const auto held = texts_.find(text_of(request));
    if (held == texts_.end()) {
      auto reply = wire::encode(wire::Error{"no such key"}, id);
      co_return co_await responder.send(std::move(reply));
    }
    auto reply = frame_of(value, id, std::as_bytes(std::span(held->second)));
    ++sending_;
    const OnExit over([this] { --sending_; });
    co_return co_await responder.send(std::move(reply));
  }

 private:
  const Texts& texts_;
  std::atomic<std::size_t>& sending_;
  std::uint64_t counted_ = 0;
};

// Node w2, with one connection to w1 and several requests on it.
class Worker {
 public:
  explicit Worker(std::uint16_t port, std::shared_ptr<Security> security = nullptr)
      : local_("test", "w2", 3, {"w1"}, test::vector_manifest(16), 4096, test::plain_memory) {
    local_.security = std::move(security);
    asio::co_spawn(io_, connect(port), net::rethrow);
    run();
    REQUIRE(connection_->is_open());
  }
  ~Worker() {  // its coroutines end before what they use
    close();
    io_.restart();
    io_.poll();
  }

  using Answer = std::optional<net::IoResult<net::Frame>>;
  void ask(Answer& answer, MessageType type, const std::string& body = "") {
    const std::uint32_t id = ++last_id_;
    waiting_.emplace(id, &answer);
    io_.restart();
    auto frame = frame_of(type, id, std::as_bytes(std::span(body)));
    asio::co_spawn(io_, write(std::move(frame)), net::rethrow);
    if (waiting_.size() == 1) asio::co_spawn(io_, read_answers(), net::rethrow);
  }
  void run() {
    io_.run_for(test::patience);
    REQUIRE(io_.stopped());
  }
  void close() { connection_->close(); }

 private:
  asio::awaitable<void> connect(std::uint16_t port) {
    const PeerAddress address{"w1", {"127.0.0.1"}, port};
    const auto welcome = co_await net::open_connection(*connection_, local_, address, 1);
    if (!welcome) connection_->close();
  }
  asio::awaitable<void> write(Bytes frame) {
    co_await writing_.take();
    const OnExit over([this] { writing_.give_back(); });
    co_await connection_->send(std::move(frame));
  }
  // They may come in any order. A failure is the answer to all that wait.
  asio::awaitable<void> read_answers() {
    const std::vector<wire::TypeBound> types{
        {value, longest_value + 4},
        {MessageType::kv_barrier, wire::max_kv_body_bytes(MessageType::kv_barrier)},
        {MessageType::error, wire::max_body_bytes(MessageType::error)}};
    const net::Expected answers{std::span<const wire::TypeBound>(types)};
    while (!waiting_.empty()) {
      auto frame = co_await connection_->receive(answers);
      if (!frame) {
        for (const auto& [id, answer] : waiting_) *answer = frame.error();
        waiting_.clear();
        co_return;
      }
      const auto asked = waiting_.find(frame->header.request_id);
      REQUIRE(asked != waiting_.end());
      *asked->second = std::move(frame);
      waiting_.erase(asked);
    }
  }

  LocalNode local_;
  asio::io_context io_{1};
  std::shared_ptr<net::Connection> connection_ = std::make_shared<net::Connection>(io_);
  net::Turns writing_{io_.get_executor()};
  std::uint32_t last_id_ = 1;  // that of the HELLO
  std::map<std::uint32_t, Answer*> waiting_;
};

bool is_value(const Worker::Answer& answer, const std::string& text) {
  return answer && *answer && (*answer)->header.type == value && text_of(**answer) == text;
}

bool is_type(const Worker::Answer& answer, MessageType type) {
  return answer && *answer && (*answer)->header.type == type;
}

struct KeyServer {
  explicit KeyServer(std::shared_ptr<Security> security = nullptr, ServerOptions options = {})
      : node(16, std::move(options), {}, true, std::move(security), nullptr, handler()) {}

  std::unique_ptr<RequestHandler> handler() { return std::make_unique<KeyHandler>(texts, sending); }
  std::uint64_t protocol_errors() { return node.local().traffic.protocol_errors; }

  Texts texts{{"bias", "zeros"}, {"weights", std::string(longest_value, 'w')}};
  std::atomic<std::size_t> sending{0};  // values
  ServedNode node;
};

}  // namespace

TEST_CASE("a handler serves message types of its own beside those of the node") {
  KeyServer keys;
  Worker worker(keys.node.port());
  Worker::Answer bias;
  Worker::Answer weights;
  Worker::Answer nothing;
  worker.ask(bias, get, "bias");
  worker.ask(weights, get, "weights");
  worker.ask(nothing, get, "momentum");
  worker.run();
  CHECK(is_value(bias, "zeros"));
  CHECK(is_value(weights, std::string(longest_value, 'w')));
  CHECK(is_type(nothing, MessageType::error));
  CHECK(keys.node.serves_an_honest_peer());
  CHECK(keys.protocol_errors() == 0);
}

TEST_CASE("a message type that no handler serves, or that is too long, ends the connection") {
  KeyServer keys;
  Worker worker(keys.node.port());
  Worker::Answer answer;
  SUBCASE("no handler has it") {
    worker.ask(answer, static_cast<MessageType>(103));
  }
  SUBCASE("longer than its handler takes") {
    worker.ask(answer, get, std::string(longest_name + 1, 'x'));
  }
  SUBCASE("beyond the numbers of messages") {
    worker.ask(answer, static_cast<MessageType>(200));
  }
  worker.run();
  REQUIRE(answer);
  CHECK(answer->has_error());
  CHECK(keys.protocol_errors() == 1);
  CHECK(keys.node.serves_an_honest_peer());
}

TEST_CASE("what the session writes by itself leaves between other frames, which do not mix") {
  const test::ClusterKey key;
  std::shared_ptr<Security> here;
  std::shared_ptr<Security> there;
  SUBCASE("over TCP") {}
  SUBCASE("over TLS") {
    here = key.open();
    there = key.open();
  }
  KeyServer keys(here);
  Worker worker(keys.node.port(), there);
  std::vector<Worker::Answer> weights(6);
  std::vector<Worker::Answer> counts(7);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    worker.ask(counts[i], count);
    worker.ask(weights[i], get, "weights");
  }
  worker.ask(counts.back(), count);
  worker.run();
  for (const auto& answer : weights) CHECK(is_value(answer, std::string(longest_value, 'w')));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    REQUIRE(is_type(counts[i], MessageType::kv_barrier));
    const auto message = wire::decode_kv(MessageType::kv_barrier, (*counts[i])->body);
    REQUIRE(message.has_value());
    CHECK(std::get<kvstore::Barrier>(*message).count == i + 1);
  }
  CHECK(keys.protocol_errors() == 0);
}

TEST_CASE("an idle connection with a handler of many requests ends when the server stops") {
  KeyServer keys;
  Worker worker(keys.node.port());
  Worker::Answer counted;
  worker.ask(counted, count);
  worker.run();
  CHECK(is_type(counted, MessageType::kv_barrier));
  keys.node.stop();  // returns
  Worker::Answer late;
  worker.ask(late, count);
  worker.run();
  REQUIRE(late);
  CHECK(late->error().kind == Failure::Kind::ended);
}

TEST_CASE("an answer that its caller does not read ends the connection when its time is up") {
  ServerOptions options;
  options.max_reply_time = std::chrono::milliseconds(100);
  KeyServer keys(nullptr, options);
  test::RawSocket caller(keys.node.port(), 4096);
  REQUIRE(test::introduce(caller));
  const std::string name = "weights";  // more than the sockets' buffers take
  REQUIRE(caller.send(frame_of(get, 2, std::as_bytes(std::span(name)))));
  REQUIRE(caller.read(1));
  CHECK(test::eventually([&] { return keys.sending == 0; }));
  CHECK(caller.ended_by_other_side());
  CHECK(keys.node.serves_an_honest_peer());
}

}  // namespace dpwa
