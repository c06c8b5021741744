#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace dpwa::test {

// Where the models of tests are: a GPU if LibTorch sees one, else the CPU; or what the environment
// variable DPWA_TEST_DEVICE names, such as cpu or cuda:1. Tests about host memory stay on the CPU,
// and say so.
inline c10::Device test_device() {
  static const c10::Device chosen = [] {
    const char* const given = std::getenv("DPWA_TEST_DEVICE");
    const std::string named = given != nullptr ? given : "";
    const int count = at::hasCUDA() ? static_cast<int>(at::getNumGPUs()) : 0;
    if (named == "cpu" || (named.empty() && count == 0)) return c10::Device(c10::kCPU);
    for (int index = 0; index < count; ++index) {
      if (named == "cuda:" + std::to_string(index) ||
          (index == 0 && (named == "cuda" || named.empty())))
        return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
    }
    std::cerr << "DPWA_TEST_DEVICE: '" << named << "' is not accepted; accepted: cpu, and cuda or "
              << "cuda:N for a GPU, of which LibTorch sees " << count << '\n';
    std::exit(2);
  }();
  return chosen;
}

}  // namespace dpwa::test
