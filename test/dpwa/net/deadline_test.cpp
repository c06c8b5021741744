#include "dpwa/net/coroutine.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>

namespace dpwa::net {
namespace {

// Times that have passed: an event loop that is out of work has run every timer.
TimePoint past(int seconds) {
  return std::chrono::steady_clock::now() - std::chrono::seconds(seconds);
}

}  // namespace

TEST_CASE("a deadline calls once when its time comes") {
  boost::asio::io_context io;
  int calls = 0;
  const Deadline deadline(io, past(1), [&] { ++calls; });
  CHECK_FALSE(deadline.expired());
  io.run();
  CHECK(calls == 1);
  CHECK(deadline.expired());
}

TEST_CASE("a deadline destroyed before its time never calls and leaves the loop no work") {
  boost::asio::io_context io;
  int calls = 0;
  {
    const Deadline deadline(io, std::chrono::steady_clock::now() + std::chrono::hours(1),
                            [&] { ++calls; });
  }
  io.run();
  CHECK(calls == 0);
}

TEST_CASE("a deadline destroyed after its timer fired, but before its call, never calls") {
  boost::asio::io_context io;
  int calls = 0;
  std::optional<Deadline> second;
  // Both timers have fired when the loop runs; the earlier one's call comes first.
  const Deadline first(io, past(2), [&] { second.reset(); });
  second.emplace(io, past(1), [&] { ++calls; });
  io.run();
  CHECK(first.expired());
  CHECK(calls == 0);
}

}  // namespace dpwa::net
