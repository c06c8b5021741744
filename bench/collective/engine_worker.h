#pragma once

#include "bench/worker/json_lines.h"

namespace dpwa::bench {

// One rank of a bare all-reduce, in a process of its own, which may be one that mpirun has started.
// `job`: engine, nodes, store_port, bytes, seconds, and the rank; without one it is that of mpirun.
// Rank 0 prints one line {"times_us": [...], "cpu_s", "setting"}, of its own process; or {"error":
// text}, as any rank does that fails. Returns the exit code.
int run_engine_worker(const Json& job);

}  // namespace dpwa::bench
