#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <new>
#include <string>

#include "dpwa/snapshot/aligned_buffer.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"

namespace dpwa {
namespace {

using test::PullingNode;
using test::ServedNode;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // every byte has shadow bytes, up to four of them
#else
constexpr bool sanitized = false;
#endif

std::uint64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
  }
  return 0;
}

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
std::size_t elements() {
  const bool fits = !sanitized && available_bytes() > 9 * gib;
  if (!fits) MESSAGE("a model of 192 MiB in place of 3 GiB: under a sanitizer, or memory is short");
  return (fits ? 3 * gib : gib / 16 * 3) / sizeof(float) + 1;
}

}  // namespace

TEST_CASE("a model of 3 GiB is pulled whole") {
  const std::size_t count = elements();
  PullSpec spec;
  spec.timeout = std::chrono::seconds(100);
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

}  // namespace dpwa
