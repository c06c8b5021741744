#include "dpwa/base/process_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

using namespace dpwa;

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
