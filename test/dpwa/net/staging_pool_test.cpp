#include "dpwa/net/staging_pool.h"

#include <doctest/doctest.h>

namespace dpwa {

TEST_CASE("a buffer that was given back is lent again") {
  StagingPool pool;
  const std::byte* first = nullptr;
  {
    auto lease = pool.lend(100'000);
    REQUIRE(lease);
    CHECK(lease->bytes().size() == 100'000);
    CHECK(pool.lent_bytes() == 100'000);
    first = lease->bytes().data();
  }
  CHECK(pool.lent_bytes() == 0);
  CHECK(pool.kept_bytes() == 100'000);
  auto again = pool.lend(50'000);
  REQUIRE(again);
  CHECK(again->bytes().data() == first);
  CHECK(pool.kept_bytes() == 0);
  auto other = pool.lend(50'000);
  REQUIRE(other);
  CHECK(other->bytes().data() != first);
}

TEST_CASE("no more is lent than the bound, however much is asked for") {
  StagingPool pool;
  std::vector<StagingPool::Lease> leases;
  while (auto lease = pool.lend(1 << 20)) leases.push_back(std::move(*lease));
  CHECK(leases.size() == 16);
  CHECK(pool.lent_bytes() == StagingPool::max_lent_bytes);
  CHECK_FALSE(pool.lend(1));
  leases.pop_back();
  CHECK(pool.lend(1 << 20));
}

TEST_CASE("a single buffer may be as large as it has to be") {
  StagingPool pool;
  auto lease = pool.lend(StagingPool::max_lent_bytes + 64);
  REQUIRE(lease);
  CHECK_FALSE(pool.lend(64));
}

TEST_CASE("only a little is kept between replies") {
  StagingPool pool;
  {
    std::vector<StagingPool::Lease> leases;
    for (int i = 0; i < 12; ++i) leases.push_back(*pool.lend(512 << 10));
  }
  CHECK(pool.lent_bytes() == 0);
  CHECK(pool.kept_bytes() == StagingPool::max_kept_bytes);
  {
    std::vector<StagingPool::Lease> leases;
    for (int i = 0; i < 100; ++i) leases.push_back(*pool.lend(64));
  }
  CHECK(pool.kept_bytes() <= StagingPool::max_kept_bytes);
}

}  // namespace dpwa
