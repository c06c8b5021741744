#include "dpwa/rules/token_bucket.h"

#include <doctest/doctest.h>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint start = TimePoint() + std::chrono::hours(1);

}  // namespace

TEST_CASE("a second's worth of requests passes at once, what is beyond waits for its token") {
  TokenBucket bucket(10, start);
  for (int i = 0; i < 10; ++i) CHECK(bucket.take(start) == Duration::zero());
  CHECK(bucket.take(start) == Duration(100ms));
  CHECK(bucket.take(start) == Duration(200ms));
}

TEST_CASE("a caller that waits as it is told gets exactly the rate") {
  TokenBucket bucket(10, start);
  TimePoint now = start;
  for (int i = 0; i < 110; ++i) now += bucket.take(now);
  CHECK(now - start >= Duration(9990ms));
  CHECK(now - start <= Duration(10010ms));
}

TEST_CASE("idle time saves no more than a second's worth") {
  TokenBucket bucket(10, start);
  const TimePoint later = start + std::chrono::hours(1);
  for (int i = 0; i < 10; ++i) CHECK(bucket.take(later) == Duration::zero());
  CHECK(bucket.take(later) > Duration::zero());
}

TEST_CASE("without a rate nothing waits") {
  TokenBucket bucket(0, start);
  for (int i = 0; i < 1000; ++i) REQUIRE(bucket.take(start) == Duration::zero());
}

}  // namespace dpwa
