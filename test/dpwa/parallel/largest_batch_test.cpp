#include "dpwa/parallel/largest_batch.h"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cstring>
#include <set>
#include <stdexcept>

using namespace dpwa;

TEST_CASE("the largest batch that fits is found exactly, in few trials, none of them twice") {
  for (std::uint64_t limit : {1, 2, 3, 100, 1000}) {
    for (std::uint64_t most = 0; most <= limit; ++most) {
      std::set<std::uint64_t> tried;
      const auto found = largest_that_fits(limit, [&](std::uint64_t batch) {
        CHECK(batch >= 1);
        CHECK(batch <= limit);
        CHECK(tried.insert(batch).second);
        return batch <= most;
      });
      CHECK(found == most);
      CHECK(tried.size() <= 22);
    }
  }
}

TEST_CASE("a tenth is kept as a margin") {
  CHECK(with_margin(0) == 0);
  CHECK(with_margin(1) == 1);
  CHECK(with_margin(2) == 1);
  CHECK(with_margin(10) == 9);
  CHECK(with_margin(11) == 9);
  CHECK(with_margin(19) == 17);
  CHECK(with_margin(1000) == 900);
}

TEST_CASE("memory is fitted by a line, and the line tells the largest batch within a budget") {
  const MemoryLine line = fit_memory({{1, 1010}, {2, 1020}, {4, 1040}});
  CHECK(line.fixed == doctest::Approx(1000));
  CHECK(line.per_sample == doctest::Approx(10));
  CHECK(line.largest_within(1505, 1 << 20) == 50);
  CHECK(line.largest_within(1505, 32) == 32);
  CHECK(line.largest_within(1005, 32) == 0);
  // Scatter, and memory that does not grow at all.
  CHECK(fit_memory({{1, 1000}, {2, 1030}, {3, 1020}}).per_sample == doctest::Approx(10));
  CHECK(fit_memory({{1, 1000}, {2, 1000}}).largest_within(1000, 77) == 77);
  CHECK(fit_memory({{1, 1000}, {2, 900}}).per_sample == 0);
  CHECK(fit_memory({{8, 500}}).fixed == 500);
}

TEST_CASE("within a budget steps are measured until they tell enough, none beyond the budget") {
  std::vector<std::uint64_t> measured;
  const auto memory = [&](std::uint64_t batch) {
    measured.push_back(batch);
    return 1000 + 10.0 * static_cast<double>(batch);
  };
  using Sizes = std::vector<std::uint64_t>;
  const auto enough = largest_within_budget(1e6, 1 << 20, 60, memory);
  CHECK(measured == Sizes{1, 2, 4, 8});
  CHECK(enough.largest == 99900);
  CHECK(enough.points.size() == 4);

  measured.clear();
  CHECK(largest_within_budget(1055, 1 << 20, 1e9, memory).largest == 5);
  CHECK(measured == Sizes{1, 2, 4});
  measured.clear();
  CHECK(largest_within_budget(1e9, 6, 1e9, memory).largest == 6);
  CHECK(measured == Sizes{1, 2, 4});
  CHECK(largest_within_budget(1009, 6, 1e9, memory).largest == 0);
  CHECK(largest_within_budget(1010, 6, 1e9, memory).largest == 1);
}

namespace {

// The kernel counts the pages of each thread in steps.
constexpr std::uint64_t counted_late = 1 << 20;

// Not from the heap, which may keep what it is given back, as a sanitizer's does.
void use_memory(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memset(memory, 1, bytes);
  ::munmap(memory, bytes);
}

}  // namespace

TEST_CASE("figures of the kernel's files are read by their names") {
  const std::string text = "Name:\tVmHWM: 3\nVmPeak:\t  9 kB\nVmHWM:\t 1234 kB\nVmRSS:\t77 kB\n";
  CHECK(kilobytes_of(text, "VmHWM") == 1234 * 1024);
  CHECK(kilobytes_of(text, "VmRSS") == 77 * 1024);
  CHECK_THROWS_AS(kilobytes_of(text, "VmSwap"), std::runtime_error);
}

TEST_CASE("the peak of memory is measured anew after it was forgotten") {
  constexpr std::size_t large = 64 << 20;
  forget_peak();
  const std::uint64_t before = peak_bytes();
  use_memory(large);
  CHECK(peak_bytes() >= before + large / 2);
  CHECK(resident_bytes() <= peak_bytes() + counted_late);
  forget_peak();
  CHECK(peak_bytes() < before + large / 2);
  CHECK(available_bytes() > 0);
}
