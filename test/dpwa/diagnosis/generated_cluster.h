#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/diagnosis/diagnose.h"

namespace dpwa::test {

// A cluster in which up to two things are wrong, as dpwa why would observe it for four seconds.
struct GeneratedCase {
  struct Fault {
    diagnosis::Cause cause;
    std::string where;  // a node, or one end of a link
  };
  std::vector<diagnosis::Observation> observations;
  std::vector<Fault> faults;
  std::string description;
};

GeneratedCase generate_case(std::uint64_t seed, unsigned faults);

}  // namespace dpwa::test
