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

// The same with the buffers that connections have.
struct UsualEnds {
  explicit UsualEnds(asio::io_context& io) : near(io), far(io) {
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
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
  UsualEnds ends(io);
  const auto message = pattern(1000);
  bool another_ran = false;
  const auto write = [&]() -> asio::awaitable<void> {
    asio::post(io, [&] { another_ran = true; });
    for (std::size_t at = 0; at < net::Stream::max_at_once_bytes / message.size(); ++at) {
      const auto failure = co_await ends.near.write_all(message);
      CHECK_FALSE(failure.has_value());
    }
    CHECK_FALSE(another_ran);
    const auto failure = co_await ends.near.write_all(message);
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

TEST_CASE("what keeps coming is read at once up to a bound, and then in turns with others") {
  asio::io_context io;
  UsualEnds ends(io);
  const auto sent = pattern(3 * net::Stream::max_read_at_once_bytes);
  std::vector<std::byte> got(sent.size());
  constexpr std::size_t step = 60'000;
  const auto write = [&]() -> asio::awaitable<void> {
    const auto failure = co_await ends.near.write_all(sent);
    CHECK_FALSE(failure.has_value());
  };
  const auto read = [&]() -> asio::awaitable<void> {
    std::size_t have = 0;
    while (have < net::Stream::max_read_at_once_bytes) {
      co_await ends.far.socket().async_wait(tcp::socket::wait_read, net::as_result);
      have += ends.far.read_at_once(std::span(got).subspan(have, step));
    }
    co_await ends.far.socket().async_wait(tcp::socket::wait_read, net::as_result);
    CHECK(ends.far.read_at_once(std::span(got).subspan(have, step)) == 0);
    const auto next = co_await ends.far.read_some(std::span(got).subspan(have, 1), 1);
    CHECK(next.has_value());
    ++have;
    co_await ends.far.socket().async_wait(tcp::socket::wait_read, net::as_result);
    have += ends.far.read_at_once(std::span(got).subspan(have, step));
    const auto rest = co_await ends.far.read_some(std::span(got).subspan(have), sent.size() - have);
    CHECK(rest.has_value());
  };
  asio::co_spawn(io, write, net::rethrow);
  asio::co_spawn(io, read, net::rethrow);
  io.run();
  CHECK(got == sent);
}

TEST_CASE("a long read is over once it has enough, wherever its bytes are cut") {
  const auto sent = pattern(70'000);
  for (const std::size_t cut : {1UL, 4464UL, 16'384UL, 53'616UL, 65'535UL, 65'536UL, 69'999UL}) {
    CAPTURE(cut);
    asio::io_context io;
    UsualEnds ends(io);
    std::vector<std::byte> got(sent.size());
    bool is_whole = false;
    const auto write = [&]() -> asio::awaitable<void> {
      auto failure = co_await ends.near.write_all(std::span(sent).first(cut));
      CHECK_FALSE(failure.has_value());
      failure = co_await ends.near.write_all(std::span(sent).subspan(cut));
      CHECK_FALSE(failure.has_value());
    };
    const auto read = [&]() -> asio::awaitable<void> {
      const auto first = co_await ends.far.read_some(got, cut);
      REQUIRE(first.has_value());
      if (*first < got.size()) {
        const auto rest =
            co_await ends.far.read_some(std::span(got).subspan(*first), got.size() - *first);
        REQUIRE(rest.has_value());
      }
      is_whole = got == sent;
      const auto answer = co_await ends.far.write_all(std::span(sent).first(1));
      CHECK_FALSE(answer.has_value());
      // A short read after it is not made to wait for many bytes.
      const auto one = co_await ends.near.read_some(std::span(got).first(1), 1);
      CHECK(one.has_value());
    };
    asio::co_spawn(io, read, net::rethrow);
    asio::co_spawn(io, write, net::rethrow);
    io.run();
    CHECK(is_whole);
  }
}

TEST_CASE("a read that waits for many bytes ends with the connection") {
  asio::io_context io;
  for (const bool closed_here : {false, true}) {
    CAPTURE(closed_here);
    io.restart();
    UsualEnds ends(io);
    std::vector<std::byte> got(1 << 20);
    bool failed = false;
    const auto read = [&]() -> asio::awaitable<void> {
      const auto count = co_await ends.far.read_some(got, got.size());
      failed = !count.has_value();
    };
    const auto close = [&]() -> asio::awaitable<void> {
      const auto failure = co_await ends.near.write_all(std::span(got).first(10));
      CHECK_FALSE(failure.has_value());
      (closed_here ? ends.far : ends.near).close();
    };
    asio::co_spawn(io, read, net::rethrow);
    asio::co_spawn(io, close, net::rethrow);
    io.run();
    CHECK(failed);
  }
}
