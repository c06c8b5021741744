#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/collective/engine/process_group.h"
#include "bench/worker/child.h"

namespace dpwa::bench {

// A group of processes of this machine on one engine, without any node: the basis of the back end.
struct BareGroup {
  std::shared_ptr<const collective::Engine> engine;
  std::unique_ptr<collective::ProcessGroup> members;
};

// Rank 0 hosts the rendezvous at `port` of loopback. Throws collective::CollectiveError.
BareGroup form_bare_group(const std::string& engine, int rank, int size, std::uint16_t port);

// One rank of a bare all-reduce, in a process of its own, which may be one that mpirun has started.
// `job`: engine, nodes, store_port, bytes, seconds, and the rank; without one it is that of mpirun.
// Rank 0 prints one line {"times_us": [...], "cpu_s", "setting"}, of its own process; or {"error":
// text}, as any rank does that fails. Returns the exit code.
int run_engine_worker(const Json& job);

// One node that trains by backend collective, in a process of its own. The body of the process:
// takes the job and then commands from standard input, answers on standard output, until the input
// ends. Returns the exit code. bench/peers/ddp_step.py answers the same, but for `allreduce`.
//   -> the job                                      <- {"ready": true, "parameters", "torch"}
//   -> {"do": "steps", "count", "communicate"}      <- {"times_us": [...], "cpu_s", "loss"}
//   -> {"do": "allreduce", "count"}                 <- {"times_us": [...], "cpu_s"}
// The job: config, name, rank, nodes, store_port, model, batch, threads, seed. All nodes of a group
// get the same commands. One more step or operation than asked for comes first, untimed: it brings
// the nodes together. Without communication nothing is sent, and the weights stay. cpu_s: of the
// process so far. A failure is answered with {"error": text}.
int run_step_worker();

}  // namespace dpwa::bench
