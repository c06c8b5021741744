// The text of a key file: refused in one line that does not repeat it, or keys that are written as
// a file which holds the same.

#include <cstdint>
#include <string_view>

#include "dpwa/security/key_file.h"
#include "test/fuzz/require.h"

using namespace dpwa;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto keys = parse_keys({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!keys) {
    DPWA_FUZZ_REQUIRE(keys.error().starts_with("fuzz:"));
    DPWA_FUZZ_REQUIRE(keys.error().find('\n') == std::string::npos);
    return 0;
  }
  DPWA_FUZZ_REQUIRE(!keys->empty() && keys->size() <= most_keys);
  const auto again = parse_keys(key_file_text(*keys).text(), "again");
  DPWA_FUZZ_REQUIRE(again.has_value() && *again == *keys);
  return 0;
}
