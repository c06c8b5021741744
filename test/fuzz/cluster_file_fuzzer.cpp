// The text of a cluster file, in either form: refused with a ConfigError, or a configuration that
// prints as a file which means the same.

#include <cstdint>
#include <string>

#include "dpwa/config/config.h"
#include "test/fuzz/require.h"

using namespace dpwa;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Config config;
  try {
    config = parse_cluster(std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
  } catch (const ConfigError& error) {
    DPWA_FUZZ_REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
    return 0;
  }
  const std::string printed = to_yaml(config);
  DPWA_FUZZ_REQUIRE(to_yaml(parse_cluster(printed, "fuzz.yaml")) == printed);
  return 0;
}
