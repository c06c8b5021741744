#include "test/dpwa/config/same_config.h"

#include <doctest/doctest.h>

#include "dpwa/config/keys.h"

namespace dpwa::test {

void check_same(const Config& a, const Config& b) {
  for (const config::KeySection& section : config::key_table()) {
    for (const config::Key& key : section.keys) {
      CAPTURE(config::path_of(section, key));
      CHECK(key.same(a, b));
    }
  }
  CHECK(a.interpolation.parameters == b.interpolation.parameters);
}

}  // namespace dpwa::test
