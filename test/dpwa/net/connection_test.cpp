#include "dpwa/net/connection.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "dpwa/net/coroutine.h"
#include "dpwa/wire/kv_routes.h"
#include "dpwa/wire/messages.h"

using namespace dpwa;
namespace asio = boost::asio;
using asio::ip::tcp;
using Bytes = std::vector<std::byte>;

namespace {

// Two ends of a connection over loopback, with the smallest buffers that the kernel grants.
struct TwoEnds {
  explicit TwoEnds(asio::io_context& io, net::Incoming::Target target = nullptr)
      : near(io), far(io, std::move(target)) {
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    acceptor.set_option(tcp::socket::receive_buffer_size(1));
    near.stream().socket().open(tcp::v4());
    near.stream().socket().set_option(tcp::socket::send_buffer_size(1));
    near.stream().socket().connect(acceptor.local_endpoint());
    acceptor.accept(far.stream().socket());
  }
  net::Connection near;
  net::Connection far;
};

kvstore::Message push_of(std::size_t bytes) {
  kvstore::Push push;
  push.slice = {"w", 0};
  push.values.resize(bytes);
  std::ranges::fill(push.values, std::byte{7});
  return push;
}

net::Expected of_workers() {
  return net::Expected{std::span(wire::kv_types(wire::KvRoute::worker_to_server))};
}

}  // namespace

TEST_CASE("messages come in their order and to their place, also when the other end has left") {
  asio::io_context io;
  Bytes place(1'000'000);
  TwoEnds ends(io, [&](wire::MessageType, std::span<const std::byte>, std::uint64_t bytes) {
    return bytes == place.size() ? std::span(place) : std::span<std::byte>();
  });
  session::Outgoing outgoing;
  asio::steady_timer wake(io);
  for (std::uint64_t tag = 1; tag <= 1000; ++tag)
    outgoing.add(tag == 500 ? push_of(place.size()) : push_of(100), tag);
  std::vector<bool> written;
  net::WriteRules rules{std::chrono::minutes(10)};
  rules.after = [&](bool whole) {
    written.push_back(whole);
    if (!outgoing.waits()) ends.near.close();
  };
  const auto write = [&]() -> asio::awaitable<void> {
    co_await net::write_waiting(ends.near.stream(), outgoing, wake, rules);
  };
  const auto read = [&]() -> asio::awaitable<void> {
    ends.far.incoming().read_ahead(net::Connection::store_ahead_bytes);
    const net::Expected expected = of_workers();
    for (std::uint32_t tag = 1; tag <= 1000; ++tag) {
      const auto frame = co_await ends.far.receive(expected);
      REQUIRE(frame.has_value());
      CHECK(frame->header.request_id == tag);
      CHECK(frame->payload.size() == (tag == 500 ? 0 : 100));
    }
    const auto end = co_await ends.far.receive(expected);
    CHECK_FALSE(end.has_value());
  };
  asio::co_spawn(io, write, net::rethrow);
  asio::co_spawn(io, read, net::rethrow);
  io.run();
  CHECK(std::ranges::all_of(place, [](std::byte each) { return each == std::byte{7}; }));
  CHECK(written.size() > 2);
  CHECK(std::ranges::all_of(written, [](bool whole) { return whole; }));
}

TEST_CASE("what was read ahead is lost when this end closes, and the next connection is sound") {
  asio::io_context io;
  TwoEnds ends(io);
  const auto converse = [&]() -> asio::awaitable<void> {
    const net::Expected pulls(net::types(wire::MessageType::pull));
    Bytes two = wire::encode(wire::Pull(), 1);
    const Bytes second = wire::encode(wire::Pull(), 2);
    two.insert(two.end(), second.begin(), second.end());
    const auto failure = co_await ends.near.send(std::move(two));
    CHECK_FALSE(failure.has_value());
    const auto first = co_await ends.far.receive(pulls);
    CHECK((first && first->header.request_id == 1));
    CHECK(ends.far.incoming().holds_bytes());
    ends.far.close();
    const auto lost = co_await ends.far.receive(pulls);
    CHECK_FALSE(lost.has_value());
    CHECK_FALSE(ends.far.incoming().holds_bytes());
  };
  asio::co_spawn(io, converse, net::rethrow);
  io.run();
}

TEST_CASE("a write that fails closes the connection and gives its messages back") {
  asio::io_context io;
  TwoEnds ends(io);
  session::Outgoing outgoing;
  asio::steady_timer wake(io);
  outgoing.add(push_of(8'000'000), 1);
  outgoing.add(push_of(100), 2);
  int failed = 0;
  net::WriteRules rules{std::chrono::minutes(10)};
  rules.staged = [&] { ends.far.close(); };
  rules.after = [&](bool whole) {
    CHECK_FALSE(whole);
    CHECK_FALSE(outgoing.is_staged());
    ++failed;
  };
  const auto write = [&]() -> asio::awaitable<void> {
    co_await net::write_waiting(ends.near.stream(), outgoing, wake, rules);
  };
  asio::co_spawn(io, write, net::rethrow);
  io.run();
  CHECK(failed == 1);
  CHECK_FALSE(ends.near.is_open());
  CHECK(outgoing.waits());  // the second one: its owner decides
}

TEST_CASE("what is added while nothing waits is written at once, until the connection closes") {
  asio::io_context io;
  TwoEnds ends(io);
  session::Outgoing outgoing;
  asio::steady_timer wake(io);
  net::Turns turns(io.get_executor());
  net::WriteRules rules{std::chrono::minutes(10)};
  rules.turns = &turns;
  const auto write = [&]() -> asio::awaitable<void> {
    co_await net::write_waiting(ends.near.stream(), outgoing, wake, rules);
    CHECK_FALSE(turns.taken());
  };
  const auto converse = [&]() -> asio::awaitable<void> {
    const net::Expected expected = of_workers();
    for (std::uint32_t tag = 1; tag <= 3; ++tag) {
      outgoing.add(push_of(10), tag);
      wake.cancel();
      const auto frame = co_await ends.far.receive(expected);
      CHECK((frame && frame->header.request_id == tag));
    }
    ends.near.close();
    wake.cancel();
  };
  asio::co_spawn(io, write, net::rethrow);
  asio::co_spawn(io, converse, net::rethrow);
  io.run();
}
