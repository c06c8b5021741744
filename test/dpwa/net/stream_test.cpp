#include "dpwa/net/stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <span>
#include <vector>

#include "dpwa/net/coroutine.h"

using namespace dpwa;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Two ends of a connection over loopback, with the smallest buffers that the kernel grants.
struct Ends {
  explicit Ends(asio::io_context& io) : near(io), far(io) {
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    acceptor.set_option(tcp::socket::receive_buffer_size(1));
    near.socket().open(tcp::v4());
    near.socket().set_option(tcp::socket::send_buffer_size(1));
    near.socket().connect(acceptor.local_endpoint());
    acceptor.accept(far.socket());
  }
  net::Stream near;
  net::Stream far;
};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

}  // namespace

TEST_CASE("short messages arrive whole where the kernel takes them in parts") {
  asio::io_context io;
  Ends ends(io);
  const auto sent = pattern(300'000);
  std::vector<std::byte> got(sent.size());
  constexpr std::size_t message = 10'000;  // in three buffers
  const auto write = [&]() -> asio::awaitable<void> {
    for (std::size_t at = 0; at < sent.size(); at += message) {
      const std::array<asio::const_buffer, 3> buffers{
          asio::buffer(&sent[at], 1000), asio::buffer(&sent[at + 1000], 1),
          asio::buffer(&sent[at + 1001], message - 1001)};
      const auto failure = co_await ends.near.write_all(buffers);
      CHECK_FALSE(failure.has_value());
    }
  };
  const auto read = [&]() -> asio::awaitable<void> {
    const auto count = co_await ends.far.read_some(got, got.size());
    CHECK(count.has_value());
  };
  asio::co_spawn(io, write, net::rethrow);
  asio::co_spawn(io, read, net::rethrow);
  io.run();
  CHECK(got == sent);
}

TEST_CASE("many short messages leave the thread to others in between") {
  asio::io_context io;
  net::Stream near(io), far(io);
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  near.socket().connect(acceptor.local_endpoint());
  acceptor.accept(far.socket());
  const auto message = pattern(1000);
  bool another_ran = false;
  const auto write = [&]() -> asio::awaitable<void> {
    asio::post(io, [&] { another_ran = true; });
    for (std::size_t at = 0; at < net::Stream::max_at_once_bytes / message.size(); ++at) {
      const auto failure = co_await near.write_all(message);
      CHECK_FALSE(failure.has_value());
    }
    CHECK_FALSE(another_ran);
    const auto failure = co_await near.write_all(message);
    CHECK_FALSE(failure.has_value());
    CHECK(another_ran);
  };
  asio::co_spawn(io, write, net::rethrow);
  io.run();
}

TEST_CASE("what has already come is read at once, and no more") {
  asio::io_context io;
  Ends ends(io);
  std::array<std::byte, 100> got{};
  CHECK(ends.far.read_at_once(got) == 0);
  const auto sent = pattern(30);
  const auto converse = [&]() -> asio::awaitable<void> {
    const auto failure = co_await ends.near.write_all(sent);
    CHECK_FALSE(failure.has_value());
    const auto first = co_await ends.far.read_some(std::span(got).first(10), 10);
    CHECK(first.has_value());
    CHECK(ends.far.read_at_once(std::span(got).subspan(10)) == 20);
    CHECK(std::equal(sent.begin(), sent.end(), got.begin()));
    ends.near.close();
    const auto end = co_await ends.far.read_some(got, 1);
    CHECK_FALSE(end.has_value());
    CHECK(ends.far.read_at_once(got) == 0);
    const auto refused = co_await ends.near.write_all(sent);
    CHECK(refused.has_value());
  };
  asio::co_spawn(io, converse, net::rethrow);
  io.run();
}
