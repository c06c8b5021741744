#pragma once

#include <cstdlib>
#include <string_view>

#include "adapters/collective/engine/engine.h"

namespace dpwa::test {

// What a run of these tests is for: DPWA_TEST_ENGINE=gloo; =tcp: the project's own engine without
// memory of one host; else the own one.
inline std::string_view tested() {
  const char* const name = std::getenv("DPWA_TEST_ENGINE");
  return name != nullptr ? name : "";
}

inline collective::EngineKind tested_engine() {
  return tested() == "gloo" ? collective::EngineKind::gloo : collective::EngineKind::automatic;
}

inline collective::GroupOptions tested_options() {
  collective::GroupOptions options;
  options.same_host = tested() != "tcp";
  return options;
}

}  // namespace dpwa::test
