#include "bench/measure/statistics.h"

#include <doctest/doctest.h>

#include <cstring>
#include <sstream>

#include "bench/measure/machine.h"
#include "dpwa/snapshot/memory_file.h"

using namespace dpwa::bench;

TEST_CASE("a quantile is the value of the nearest rank") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.99) == 5);
  CHECK(quantile(values, 1) == 5);
  CHECK(quantile({7, 1}, 0.5) == 1);
}

TEST_CASE("the 99th percentile of a hundred values is the last but one") {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  CHECK(quantile(values, 0.99) == 99);
}

TEST_CASE("a range has the lowest, the median and the highest value") {
  const Range range = range_of({2, 9, 4});
  CHECK(range.min == 2);
  CHECK(range.median == 4);
  CHECK(range.max == 9);
  CHECK(spread_of(range) == doctest::Approx(7.0 / 4));
}

TEST_CASE("nothing has no quantiles and no spread") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(range_of({}).max == 0);
  CHECK(spread_of(range_of({})) == 0);
}

TEST_CASE("the time of all processors is read from the first line of /proc/stat") {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const ProcessorTime time =
      parse_processor_time("cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", 100);
  CHECK(time.busy == doctest::Approx(1.7));
  CHECK(time.steal == doctest::Approx(0.1));
  CHECK(time.total == doctest::Approx(10));
}

TEST_CASE("a /proc/stat of another form gives no time") {
  for (const char* text : {"", "intr 1 2 3\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"}) {
    CAPTURE(text);
    CHECK(parse_processor_time(text, 100).total == 0);
  }
}

TEST_CASE("a quiet machine gives no reason to doubt") {
  const Noise noise = judge_noise(0.1, {10, 0, 100}, {12, 0.01, 104}, 1.9);
  CHECK(noise.reasons.empty());
  CHECK(noise.other_load == doctest::Approx(0.025));
}

TEST_CASE("windows that differ, other work and steal are told apart") {
  CHECK(judge_noise(0.2, {}, {}, 0).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {13, 0, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {11, 1, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0.2, {10, 0, 100}, {13, 1, 104}, 1).reasons.size() == 3);
}

TEST_CASE("more processor time of our own than the machine counted is no load of others") {
  CHECK(judge_noise(0, {10, 0, 100}, {11, 0, 104}, 2).other_load == 0);
}

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
