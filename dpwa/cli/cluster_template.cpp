#include "dpwa/cli/cluster_template.h"

namespace dpwa::cli {
namespace {

constexpr const char* head =
    R"(# A cluster of dpwa nodes. Every node reads this same file and finds itself by its name:
#   dpwa-train --config cluster.yaml --name w1
# Check it after editing: dpwa config check cluster.yaml
# Durations and sizes accept units (500ms, 2s, 64MiB); a bare number has the unit of the key's name.

cluster: dpwa                    # nodes of another cluster are refused

# host is what peers dial. Optional: bind, where the node listens if that differs (0.0.0.0 = on every
# interface), and cores, the processors that the node is pinned to.
nodes:
)";

constexpr const char* settings = R"(
backend: gossip                  # gossip | collective (synchronous all-reduce) | null (one node); kvstore: a later version

gossip:
  pull_probability: 1.0          # of beginning a pull at a step (alias of the original: fetch_probability)
  timeout_ms: 500                # whole pull: connect, request, reply
  step_budget_ms: 0              # longest wait of step() for the network; 0 = blend at a later step
  blend: delta                   # delta: x + f (peer - own snapshot) | lerp: the original's (1-f) x + f peer
  blocks: 1                      # parts of the model, 1 to 64; a pull brings one of them, in turn
  max_staleness: 0               # steps that a peer may lag; 0 = no bound
  max_frozen_ms: 10000           # a peer whose clock stands still for so long is not blended; 0 = no bound
  final_average: true            # one average over all nodes at the end
  daemon: false                  # true: the network side of a node is a process of its own, dpwa node
  # seed: 1                      # of the choice of peers and of when to pull; without it from the clock
  start_wait_ms: 10000           # longest wait at the start for the other nodes
  finish_wait_ms: 10000          # longest wait at the end for nodes that still train
  min_nodes: 1                   # fewer at the start, or in the final average, are an error
  # Scores of peers; the best score plus a random number is chosen.
  flow_control:
    {initial: 1000, min: 10, max: 1000, on_success: 10, on_failure: -100, recovery_per_second: 10}
  # Before anything is blended. distance: off | warn | clip | refuse, of parameters further away than
  # distance_multiple times the median; three offences in a row: not asked for a while.
  firewall:
    {distance: clip, distance_multiple: 2, distance_samples: 8,
     quarantine_after: 3, quarantine_ms: 2000, quarantine_max_ms: 300000}
  # Who takes part beside the nodes of this file. join: open | closed, to those who come with --join.
  membership: {join: open, suspect_ms: 5000, forget_ms: 1h, max_members: 4096}

# Of backend collective alone. Gradients travel in buckets; sizes of 0: a bucket for each parameter.
collective:
  engine: auto                   # auto | gloo | nccl | mpi
  first_bucket_bytes: 1MiB       # the bucket that is full first
  bucket_bytes: 25MiB            # the others
  compression: none              # none | fp16 | bf16: of what travels; sums are fp32
  average_buffers: false         # BatchNorm statistics: false: those of the first node at work; true: the mean
  plaintext: false               # true: gradients may travel unencrypted beside psk or mtls
  start_wait_ms: 60000           # longest wait at the start until all nodes are there
  hung_after_ms: 600000          # a node that answers and is late for so long is lost; 0 = never
  stall_warn_ms: 10000           # a node that is late for so long is named in the log; 0 = never
  lost_after_ms: 0               # a node whose network thread is silent for so long is lost; 0 = learned from the run
  on_lost_rank: stop             # stop | shrink | gossip: what the others do without it
  minority: stop                 # stop | gossip: what a part without the majority of the group does

# How far a node moves towards its peer, 0 to 1. Methods and their parameters:
#   constant {value} | clock | loss | linear {start, end, target} | loss_divergence {target}
# divergence_threshold T > 0 damps each of them by loss/T while the loss is below T; 0 = off.
interpolation: {method: constant, value: 0.5, divergence_threshold: 0}
)";

constexpr const char* security_insecure = R"(
# Anyone who reaches these ports can read the model and send parameters, unencrypted: private network only.
security: {mode: insecure}
)";

constexpr const char* security_loopback = R"(
# Not needed on loopback. A node listens beyond it only with an explicit mode: psk is TLS by a key that
# dpwa keygen makes, mtls is TLS by certificates; "insecure" means that anyone who reaches the port can
# read the model and send parameters: private network only.
# security: {mode: psk, key_file: cluster.key}
)";

constexpr const char* security_psk = R"(
# TLS 1.3 between nodes that hold the key of this file: dpwa keygen -o cluster.key, one copy a machine.
security: {mode: psk, key_file: cluster.key}
)";

constexpr const char* tail = R"(
transport:
  same_host: auto                # auto: nodes of one user and machine read each other's memory; off: TCP always
  encoding: fp32                 # fp32 | fp16 | bf16 | int8: of parameters on the wire
  congestion_control: auto       # auto: reno on loopback, else the system's own; or a name such as cubic, bbr
  chunk_bytes: 512KiB            # checksummed unit of a reply; a multiple of 64 from 4KiB to 16MiB
  checksum: on                   # of chunks of parameters; off: none, for links that keep bytes whole
  max_connections: 256           # inbound, at once
  max_connections_per_address: 128
  max_connections_per_peer: 4    # one more closes the one that has been idle longest
  max_replies: 64                # snapshots being sent at once; the next one is told to come back
  max_requests_per_second: 10000 # on one connection; what is beyond waits; 0: no bound

log: {level: info, file: ""}     # trace | debug | info | warn | error | off; no file = stderr
)";

std::string node_line(const ClusterTemplate& wanted, unsigned index) {
  const auto hosts = static_cast<unsigned>(wanted.hosts.size());
  const std::string& name = wanted.hosts[index % hosts];
  const bool plain = name.find_first_of(":%") == std::string::npos;
  const std::string host = plain ? name : '"' + name + '"';
  std::string line = "  - {name: w" + std::to_string(index + 1) + ", host: " + host +
                     ", port: " + std::to_string(wanted.port + index / hosts);
  if (!wanted.processors.empty()) {
    const int core = wanted.processors[index % wanted.processors.size()];
    line += ", cores: [" + std::to_string(core) + "]";
  }
  return line + "}\n";
}

}  // namespace

std::string cluster_file_text(const ClusterTemplate& wanted) {
  std::string text = head;
  for (unsigned i = 0; i < wanted.nodes; ++i) text += node_line(wanted, i);
  text += settings;
  if (wanted.psk) {
    text += security_psk;
  } else {
    text += wanted.insecure ? security_insecure : security_loopback;
  }
  return text + tail;
}

}  // namespace dpwa::cli
