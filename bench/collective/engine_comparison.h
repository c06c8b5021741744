#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "bench/measure/statistics.h"
#include "bench/worker/child.h"

namespace dpwa::bench {

// An engine of backend collective, and its measurements.
struct EngineTimes {
  std::string name;
  std::string absent;                         // why there are no figures; empty: there are
  std::string setting = {};                   // how it was set up; empty: there is nothing to say
  std::vector<std::vector<double>> times_us;  // of an all-reduce, by window
};

struct EngineComparison {
  std::uint64_t bytes = 0;
  std::size_t nodes = 0;
  std::vector<EngineTimes> engines;
  Noise noise;
};

// All-reduces `bytes` over `nodes` processes by each engine that is not absent, in turn for
// `seconds` each, window by window: every window starts new processes, as those of MPI take a core
// while they wait. MPI's are started by mpirun; without one it becomes absent. Throws
// std::runtime_error.
EngineComparison compare_engines(std::vector<EngineTimes> engines, std::uint64_t bytes,
                                 std::size_t nodes, double seconds, std::ostream& progress);

// The JSON document of docs/PERFORMANCE.md.
Json engine_comparison_document(const EngineComparison& measured);
void print_engine_comparison(const Json& document, std::ostream& out);

}  // namespace dpwa::bench
