#include "dpwa/net/request_handler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
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
constexpr auto barrier = static_cast<MessageType>(102);  // answered by itself, for all at once
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
  KeyHandler(const Texts& texts, unsigned callers, std::atomic<std::size_t>& waiting,
             std::atomic<std::size_t>& sending)
      : texts_(texts), callers_(callers), count_(waiting), sending_(sending) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override {
    if (requester.peer.empty()) return {};  // nodes only
    return {{get, longest_name + 4}, {barrier, 4}};
  }
  bool may_wait() const override { return true; }

  asio::awaitable<bool> answer(net::Frame request, Responder& responder) override {
    const std::uint32_t id = request.header.request_id;
    if (request.header.type == barrier) {
      co_await wait_for_all(responder);
      auto reply = frame_of(barrier, id, {});
      co_return co_await responder.send(std::move(reply));
    }
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

  void connection_closed(const Responder& responder) override {
    for (const auto& waiting : waiting_) {
      if (waiting.first == &responder) waiting.second->cancel();
    }
  }

 private:
  asio::awaitable<void> wait_for_all(Responder& responder) {
    asio::steady_timer turn(responder.executor(), TimePoint::max());
    waiting_.emplace_back(&responder, &turn);
    ++count_;
    const OnExit over([this, &turn] {
      std::erase_if(waiting_, [&](const auto& waiting) { return waiting.second == &turn; });
      --count_;
    });
    if (waiting_.size() == callers_) {
      for (const auto& waiting : waiting_) waiting.second->cancel();
    } else {
      co_await turn.async_wait(net::as_result);
    }
  }

  const Texts& texts_;
  const unsigned callers_;
  std::atomic<std::size_t>& count_;
  std::atomic<std::size_t>& sending_;
  std::vector<std::pair<const Responder*, asio::steady_timer*>> waiting_;
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
  void run_until(const Answer& answer) {
    while (!answer) REQUIRE(io_.run_one_for(test::patience) > 0);
  }
  void run_until_waiting(const std::atomic<std::size_t>& count, std::size_t expected) {
    REQUIRE(test::eventually([&] {
      io_.poll();
      return count == expected;
    }));
  }
  void close() { connection_->close(); }

 private:
  asio::awaitable<void> connect(std::uint16_t port) {
    const PeerAddress address{"w1", {"127.0.0.1"}, port};
    const auto welcome = co_await net::open_connection(*connection_, local_, address, "auto", 1);
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
        {barrier, 4},
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
  explicit KeyServer(std::shared_ptr<Security> security = nullptr, unsigned callers = 2,
                     ServerOptions options = {})
      : node(16, std::move(options), {}, true, std::move(security), nullptr, handler(callers)) {}

  std::unique_ptr<RequestHandler> handler(unsigned callers) {
    return std::make_unique<KeyHandler>(texts, callers, waiting, sending);
  }
  std::uint64_t protocol_errors() { return node.local().traffic.protocol_errors; }

  Texts texts{{"bias", "zeros"}, {"weights", std::string(longest_value, 'w')}};
  std::atomic<std::size_t> waiting{0};  // at barriers
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

TEST_CASE("requests on a connection are answered while an earlier one waits for other callers") {
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
  Worker::Answer first;
  std::vector<Worker::Answer> weights(6);  // whose frames must not mix
  Worker::Answer second;
  worker.ask(first, barrier);
  for (auto& answer : weights) worker.ask(answer, get, "weights");
  for (auto& answer : weights) worker.run_until(answer);
  CHECK_FALSE(first);
  worker.ask(second, barrier);
  worker.run();
  for (const auto& answer : weights) CHECK(is_value(answer, std::string(longest_value, 'w')));
  CHECK(is_type(first, barrier));
  CHECK(is_type(second, barrier));
  CHECK(keys.protocol_errors() == 0);
}

TEST_CASE("answers that wait end with their connection, and when the server stops") {
  KeyServer keys(nullptr, 3);
  Worker::Answer waiting;
  Worker::Answer given_up;
  {
    Worker gone(keys.node.port());
    gone.ask(given_up, barrier);
    gone.run_until_waiting(keys.waiting, 1);
    CHECK_FALSE(given_up);
    gone.close();
    gone.run();
  }
  CHECK(given_up->has_error());
  CHECK(test::eventually([&] { return keys.waiting == 0; }));
  Worker worker(keys.node.port());
  Worker::Answer last;
  worker.ask(waiting, barrier);
  worker.ask(last, barrier);
  worker.run_until_waiting(keys.waiting, 2);
  CHECK_FALSE(waiting);
  CHECK_FALSE(last);
  keys.node.stop();  // returns
  worker.run();
  REQUIRE(waiting);
  CHECK(waiting->error().kind == Failure::Kind::ended);
}

TEST_CASE("an answer that its caller does not read ends the connection when its time is up") {
  ServerOptions options;
  options.max_reply_time = std::chrono::milliseconds(100);
  KeyServer keys(nullptr, 2, options);
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
