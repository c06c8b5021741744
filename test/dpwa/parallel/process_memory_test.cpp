#include "dpwa/parallel/process_memory.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace dpwa;

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
  {
    const std::vector<char> memory(large, 1);
    CHECK(memory[large / 2] == 1);
  }
  CHECK(peak_bytes() >= before + large / 2);
  CHECK(resident_bytes() <= peak_bytes());
  forget_peak();
  CHECK(peak_bytes() < before + large / 2);
  CHECK(available_bytes() > 0);
}
