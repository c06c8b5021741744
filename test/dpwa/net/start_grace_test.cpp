#include "dpwa/net/start_grace.h"

#include <doctest/doctest.h>

#include <boost/asio/error.hpp>

using namespace dpwa;
using net::StartGrace;

namespace {

const TimePoint start{std::chrono::hours(1)};

net::Failure refused() {
  return {boost::asio::error::make_error_code(boost::asio::error::connection_refused)};
}

}  // namespace

TEST_CASE("nobody who listens is a warning only some seconds after the start") {
  const StartGrace grace(start);
  CHECK(grace.level_of(refused(), start) == LogLevel::info);
  CHECK(grace.level_of(refused(), start + StartGrace::length - Duration(1)) == LogLevel::info);
  CHECK(grace.level_of(refused(), start + StartGrace::length) == LogLevel::warn);
}

TEST_CASE("nobody who listens is a warning at once where somebody did before") {
  StartGrace grace(start);
  grace.connected();
  CHECK(grace.level_of(refused(), start) == LogLevel::warn);
}

TEST_CASE("any other failure is a warning at once") {
  const StartGrace grace(start);
  CHECK(grace.level_of({net::Failure::Kind::security, "wrong key"}, start) == LogLevel::warn);
  CHECK(grace.level_of({net::Failure::Kind::rejected, "no"}, start) == LogLevel::warn);
  CHECK(grace.level_of({net::Failure::Kind::timed_out, "no answer"}, start) == LogLevel::warn);
}
