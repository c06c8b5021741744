#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <new>

#include "dpwa/base/process_memory.h"
#include "dpwa/net/staging_pool.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/sanitized.h"

namespace dpwa {
namespace {

using test::PullingNode;
using test::ServedNode;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// Not touched before it is used: of a node's buffers most are not, in one pull.
AlignedBuffer untouched(std::size_t bytes) {
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_HUGEPAGE);
  const auto unmap = [bytes](std::byte* mapping) { ::munmap(mapping, bytes); };
  return {std::shared_ptr<std::byte>(static_cast<std::byte*>(data), unmap), bytes};
}

// 3 GiB and one number more: beyond what a signed 32-bit length counts. In memory are the snapshot
// that is served and where it lands.
std::size_t large_elements() {
  const bool fits = !test::sanitized && available_bytes() > 9 * gib;
  if (!fits) MESSAGE("a model of 192 MiB in place of 3 GiB: under a sanitizer, or memory is short");
  return (fits ? 3 * gib : gib / 16 * 3) / sizeof(float) + 1;
}

}  // namespace

TEST_CASE("a model of 3 GiB is pulled whole") {
  const std::size_t count = large_elements();
  PullSpec spec;
  spec.timeout = std::chrono::hours(1);  // however slow the machine is
  ServerOptions options;
  options.max_reply_time = spec.timeout;
  ServedNode peer(count, options, untouched);
  PullingNode node({{"w1", {"127.0.0.1"}, peer.port()}}, count, 1, /*same_host=*/false, nullptr,
                   untouched);
  const Arrival arrival = node.pull(spec);
  CHECK(arrival.outcome == Outcome::mixed);
  CHECK(arrival.bytes == count * sizeof(float));
  const auto landed = node.landed();
  REQUIRE(landed.size() == count);
  for (std::size_t i = 0; i < count; i += 1023) {
    if (landed[i] != 1.0F) FAIL("number " << i << " did not land");
  }
  CHECK(landed.back() == 1.0F);
}

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
