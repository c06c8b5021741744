#pragma once

namespace dpwa::bench {

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
