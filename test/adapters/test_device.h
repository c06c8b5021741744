#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>

#include <cstdlib>

namespace dpwa::test {

// Where the models of tests are: a GPU if LibTorch sees one, else the CPU; or what the environment
// variable DPWA_TEST_DEVICE names, such as cpu or cuda:1. Tests about host memory stay on the CPU,
// and say so.
inline c10::Device test_device() {
  static const c10::Device chosen = [] {
    const char* named = std::getenv("DPWA_TEST_DEVICE");
    const c10::Device device(named != nullptr ? named : at::hasCUDA() ? "cuda" : "cpu");
    return device.is_cuda() && !device.has_index() ? c10::Device(c10::kCUDA, 0) : device;
  }();
  return chosen;
}

}  // namespace dpwa::test
