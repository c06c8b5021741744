#include "dpwa/log/log.h"

#include <doctest/doctest.h>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint start{};

}  // namespace

TEST_CASE("a recurring message passes once a period and then says how many were held back") {
  LogLimiter limiter(60s);
  CHECK(limiter.pass("a", start) == 0);
  CHECK_FALSE(limiter.pass("a", start + 1s));
  CHECK_FALSE(limiter.pass("a", start + 59s));
  CHECK(limiter.pass("a", start + 60s) == 2);
  CHECK_FALSE(limiter.pass("a", start + 61s));
  CHECK(limiter.pass("a", start + 120s) == 1);
  CHECK(limiter.pass("a", start + 240s) == 0);
}

TEST_CASE("messages of different keys do not hold each other back") {
  LogLimiter limiter(60s);
  CHECK(limiter.pass("a", start) == 0);
  CHECK(limiter.pass("b", start) == 0);
  CHECK_FALSE(limiter.pass("a", start + 1s));
  CHECK_FALSE(limiter.pass("b", start + 1s));
}

TEST_CASE("more keys than a node has reason to know are forgotten instead of kept") {
  LogLimiter limiter(60s);
  CHECK(limiter.pass("first", start) == 0);
  for (int i = 0; i < 5000; ++i) limiter.pass(std::to_string(i), start);
  CHECK(limiter.pass("first", start + 60s) == 0);  // not 1
}

TEST_CASE("ever new keys do not fill the log") {
  LogLimiter limiter(60s);
  unsigned passed = 0;
  for (int i = 0; i < 5000; ++i)
    passed += limiter.pass(std::to_string(i), start + i * 1ms).has_value() ? 1 : 0;
  CHECK(passed == LogLimiter::most_in_a_period);
  CHECK_FALSE(limiter.pass("4999", start + 59s));
  CHECK(limiter.pass("4999", start + 60s) == 2);
}

}  // namespace dpwa
