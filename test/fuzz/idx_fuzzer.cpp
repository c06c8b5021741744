// A file of the MNIST form, after decompression.

#include <cstdint>
#include <vector>

#include "dpwa/config/config.h"
#include "examples/train/data_sets.h"
#include "test/fuzz/require.h"

using namespace dpwa::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const IdxTensor tensor = parse_idx(std::vector<std::uint8_t>(data, data + size), "fuzz");
    std::size_t elements = 1;
    for (const std::size_t extent : tensor.dimensions) elements *= extent;
    DPWA_FUZZ_REQUIRE(tensor.elements.size() == elements);
  } catch (const dpwa::ConfigError&) {
  }
  return 0;
}
