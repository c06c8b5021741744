#pragma once

#include <doctest/doctest.h>

#include "dpwa/config/config.h"
#include "dpwa/config/keys.h"

namespace dpwa::test {

// Checks that two configurations agree in every field but the file they came from and the own name.
inline void check_same(const Config& a, const Config& b) {
  for (const config::KeySection& section : config::key_table()) {
    for (const config::Key& key : section.keys) {
      CAPTURE(config::path_of(section, key));
      CHECK(key.same(a, b));
    }
  }
  CHECK(a.interpolation.parameters == b.interpolation.parameters);
}

}  // namespace dpwa::test
