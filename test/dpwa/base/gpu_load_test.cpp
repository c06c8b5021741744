#include "dpwa/base/gpu_load.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "test/support/eventually.h"

namespace dpwa {

TEST_CASE("the GPUs of a machine are told once the library has answered") {
  const GpuWatch watch(DPWA_FAKE_NVML);
  REQUIRE(test::eventually([&] { return !watch.loads().empty(); }));
  const auto gpus = watch.loads();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].name == "Stand-in 0?[31m");
  CHECK(gpus[0].busy == 0.75);
  CHECK(gpus[0].memory_used_bytes == 6000);
  CHECK(gpus[1].memory_bytes == 16000);
  CHECK_FALSE(gpus[1].busy);
}

TEST_CASE("nobody waits for a library that hangs, and none is needed") {
  ::setenv("DPWA_FAKE_NVML", "hangs", 1);
  CHECK(GpuWatch(DPWA_FAKE_NVML).loads().empty());
  CHECK(GpuWatch("libno-such-library.so").loads().empty());
}

}  // namespace dpwa
