#include "dpwa/net/requests.h"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/wire/messages.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using net::Failure;
using net::Frame;
using net::IoResult;
using net::Requests;
using test::FakePeer;
using test::RawSocket;
using wire::MessageType;

// Asks for the status over one connection to a peer on loopback.
class Asker {
 public:
  explicit Asker(std::uint16_t port) {
    run(connect(port));
    REQUIRE(stream_->is_open());
  }

  using Answer = std::optional<IoResult<Frame>>;
  // `more`: bytes that follow the request, so that it takes time to leave.
  void ask(Answer& answer, Duration patience = test::patience, std::size_t more = 0) {
    io_.restart();
    asio::co_spawn(io_, ask_for(answer, patience, more), net::rethrow);
  }
  void run() {
    io_.run_for(test::patience);
    REQUIRE(io_.stopped());
  }
  Requests& shared() { return *requests_; }
  asio::io_context& io() { return io_; }

 private:
  void run(asio::awaitable<void> work) {
    asio::co_spawn(io_, std::move(work), net::rethrow);
    run();
  }
  asio::awaitable<void> connect(std::uint16_t port) {
    const PeerAddress address{"w1", {"127.0.0.1"}, port};
    const auto failure = co_await net::connect(stream_->socket(), address);
    if (failure) stream_->close();
    const wire::TypeBound status{MessageType::status, wire::max_body_bytes(MessageType::status)};
    requests_.emplace(stream_, std::vector{status});
  }
  asio::awaitable<void> ask_for(Answer& answer, Duration patience, std::size_t more) {
    const std::uint32_t id = requests_->next_id();
    auto frame = wire::encode_empty(MessageType::status_request, id);
    frame.resize(frame.size() + more);
    const TimePoint until = std::chrono::steady_clock::now() + patience;
    auto outcome = co_await requests_->ask(id, std::move(frame), until);
    answer = std::move(outcome);
  }

  asio::io_context io_{1};
  std::shared_ptr<net::Stream> stream_ = std::make_shared<net::Stream>(io_);
  std::optional<Requests> requests_;
};

std::uint32_t id_of_next(RawSocket& socket) {
  const auto frame = socket.read_frame();
  return frame ? frame->header.request_id : 0;
}

bool answer(RawSocket& socket, std::uint32_t id) {
  return socket.send(wire::encode(wire::Status{std::to_string(id)}, id));
}

std::string json_of(const Asker::Answer& answer) {
  if (!answer || !*answer) return "nothing";
  const auto status = wire::decode_status((*answer)->body);
  return status ? status->json : "no status";
}

bool failed_as(const Asker::Answer& answer, Failure::Kind kind) {
  return answer && answer->has_error() && answer->error().kind == kind;
}

}  // namespace

TEST_CASE("two requests outstanding on one connection get their answers, whatever the order") {
  FakePeer peer([](RawSocket& socket) {
    const std::uint32_t first = id_of_next(socket);
    const std::uint32_t second = id_of_next(socket);  // comes before any answer
    answer(socket, second);
    answer(socket, first);
    socket.ended_by_other_side();
  });
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first);
  asker.ask(second);
  asker.run();
  CHECK(json_of(first) == "1");
  CHECK(json_of(second) == "2");
  CHECK(asker.shared().outstanding() == 0);
  CHECK(asker.shared().is_open());
}

TEST_CASE("a deadline ends its request alone, and the answer that comes late is dropped") {
  FakePeer peer([](RawSocket& socket) {
    const std::uint32_t first = id_of_next(socket);
    const std::uint32_t second = id_of_next(socket);
    answer(socket, second);
    const std::uint32_t third = id_of_next(socket);  // asked once the first had been given up
    answer(socket, first);
    answer(socket, third);
    socket.ended_by_other_side();
  });
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first, std::chrono::milliseconds(20));
  asker.ask(second);
  while (!first || !second) REQUIRE(asker.io().run_one_for(test::patience) > 0);
  CHECK(failed_as(first, Failure::Kind::timed_out));
  CHECK(json_of(second) == "2");
  Asker::Answer third;
  asker.ask(third);
  asker.run();
  CHECK(json_of(third) == "3");
  CHECK(asker.shared().outstanding() == 0);
}

TEST_CASE("a deadline that passes before a request is sent ends that request alone") {
  constexpr std::size_t more = std::size_t{64} << 20;  // more than the kernel takes
  std::promise<void> given_up;
  FakePeer peer([&given_up](RawSocket& socket) {
    given_up.get_future().wait_for(test::patience);
    const std::uint32_t first = id_of_next(socket);
    socket.read(more);
    answer(socket, first);
    answer(socket, id_of_next(socket));  // of the third: the second was never sent
    socket.ended_by_other_side();
  });
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first, test::patience, more);
  asker.ask(second, std::chrono::milliseconds(20));
  while (!second) REQUIRE(asker.io().run_one_for(test::patience) > 0);
  CHECK(failed_as(second, Failure::Kind::timed_out));
  CHECK_FALSE(first);
  CHECK(asker.shared().is_open());
  CHECK(asker.shared().outstanding() == 1);
  Asker::Answer third;
  asker.ask(third);
  given_up.set_value();
  asker.run();
  CHECK(json_of(first) == "1");
  CHECK(json_of(third) == "3");
  CHECK(asker.shared().outstanding() == 0);
}

TEST_CASE("a deadline that passes while a request is being sent ends the connection") {
  std::promise<void> over;
  FakePeer peer([&over](RawSocket&) {
    over.get_future().wait_for(test::patience);  // reads nothing meanwhile
  });
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first, std::chrono::milliseconds(20), std::size_t{64} << 20);
  asker.ask(second);
  while (!first || !second) REQUIRE(asker.io().run_one_for(test::patience) > 0);
  CHECK(failed_as(first, Failure::Kind::timed_out));
  CHECK(failed_as(second, Failure::Kind::timed_out));
  CHECK_FALSE(asker.shared().is_open());
  over.set_value();
}

TEST_CASE("the end of a connection ends every request on it") {
  Failure::Kind kind = Failure::Kind::ended;
  std::function<void(RawSocket&)> script;
  SUBCASE("the peer leaves") {
    script = [](RawSocket& socket) { id_of_next(socket), id_of_next(socket); };
  }
  SUBCASE("the peer answers what nobody asked") {
    script = [](RawSocket& socket) {
      id_of_next(socket);
      answer(socket, 77);
      socket.ended_by_other_side();
    };
    kind = Failure::Kind::protocol;
  }
  SUBCASE("the peer answers by noise") {
    script = [](RawSocket& socket) {
      id_of_next(socket);
      socket.send(std::string(64, 'x'));
      socket.ended_by_other_side();
    };
    kind = Failure::Kind::protocol;
  }
  FakePeer peer(script);
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first);
  asker.ask(second);
  asker.run();
  CHECK(failed_as(first, kind));
  CHECK(failed_as(second, kind));
  CHECK_FALSE(asker.shared().is_open());
}

TEST_CASE("closing a connection ends every request on it at once") {
  FakePeer peer([](RawSocket& socket) { socket.ended_by_other_side(); });
  Asker asker(peer.port());
  Asker::Answer first;
  Asker::Answer second;
  asker.ask(first);
  asker.ask(second);
  while (asker.shared().outstanding() < 2) REQUIRE(asker.io().run_one_for(test::patience) > 0);
  asker.shared().close();
  asker.run();
  CHECK(failed_as(first, Failure::Kind::ended));
  CHECK(failed_as(second, Failure::Kind::ended));
}

TEST_CASE("more requests than one connection may have are refused, and harm no other") {
  FakePeer peer([](RawSocket& socket) {
    for (std::size_t i = 0; i < Requests::max_outstanding; ++i) answer(socket, id_of_next(socket));
    socket.ended_by_other_side();
  });
  Asker asker(peer.port());
  std::vector<Asker::Answer> answers(Requests::max_outstanding + 1);
  for (auto& answer : answers) asker.ask(answer);
  asker.run();
  CHECK(failed_as(answers.back(), Failure::Kind::busy));
  answers.pop_back();
  for (std::size_t i = 0; i < answers.size(); ++i)
    CHECK(json_of(answers[i]) == std::to_string(i + 1));
}

}  // namespace dpwa
