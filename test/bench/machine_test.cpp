#include "bench/measure/machine.h"

#include <doctest/doctest.h>

#include <cstring>
#include <sstream>

#include "dpwa/snapshot/memory_file.h"

using namespace dpwa::bench;

namespace {

// A heap on huge pages, a snapshot of the process itself and one of a peer, whose id begins alike.
constexpr const char* smaps = R"(7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000400000 rw-s 00000000 00:01 77                         /memfd:dpwa-snapshot-123 (deleted)
Rss:                4100 kB
Pss:                2050 kB
AnonHugePages:         0 kB
ShmemPmdMapped:     4096 kB
7f2000000000-7f2000400000 r--s 00000000 00:01 78                         /memfd:dpwa-snapshot-1234 (deleted)
Rss:                3000 kB
Shared_Clean:       3000 kB
ShmemPmdMapped:     2048 kB
)";

}  // namespace

TEST_CASE("only snapshots of other processes count as mapped from peers") {
  std::istringstream text(smaps);
  const MappedMemory mapped = parse_mapped_memory(text, 123);
  CHECK(mapped.peers_kib == 3000);
  CHECK(mapped.huge_kib == 2048 + 4096);
}

TEST_CASE("the owner is told by the whole id") {
  std::istringstream text(smaps);
  CHECK(parse_mapped_memory(text, 1234).peers_kib == 4100);
  std::istringstream again(smaps);
  CHECK(parse_mapped_memory(again, 12).peers_kib == 4100 + 3000);
}

TEST_CASE("nothing to read means nothing mapped") {
  std::istringstream text;
  const MappedMemory mapped = parse_mapped_memory(text, 1);
  CHECK(mapped.peers_kib == 0);
  CHECK(mapped.huge_kib == 0);
}

TEST_CASE("a snapshot of this process itself is its own memory") {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const auto file = dpwa::MemoryFile::create(bytes);
  REQUIRE(file != nullptr);
  std::memset(file->data(), 1, bytes);
  CHECK(mapped_memory().peers_kib == 0);
  CHECK(peak_resident_kib() >= bytes / 1024);
}
