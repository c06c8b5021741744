// A checkpoint file: its frame with any bytes, and its run state behind a right frame.

#include <cstdint>
#include <exception>
#include <string>

#include "examples/train/checkpoint_store.h"
#include "examples/train/run_state.h"
#include "test/fuzz/require.h"

using namespace dpwa::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const std::string body = checkpoint_body(bytes);
    DPWA_FUZZ_REQUIRE(checkpoint_header(body) + body == bytes);
  } catch (const std::runtime_error&) {
  }
  try {
    const CheckpointParts parts = split_checkpoint(bytes);
    const RunState state = run_state_from_json(std::string(parts.state));
    (void)to_json(state);
  } catch (const std::exception&) {
  }
  return 0;
}
