#pragma once

#include <cstdlib>
#include <string_view>

#include "adapters/collective/engine/engine.h"

namespace dpwa::test {

// The engine of a run of these tests: DPWA_TEST_ENGINE=gloo, or that which `auto` chooses.
inline collective::EngineKind tested_engine() {
  const char* const name = std::getenv("DPWA_TEST_ENGINE");
  const bool gloo = name != nullptr && std::string_view(name) == "gloo";
  return gloo ? collective::EngineKind::gloo : collective::EngineKind::automatic;
}

}  // namespace dpwa::test
