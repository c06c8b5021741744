#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "dpwa/rules/options.h"

namespace dpwa::config {
namespace {}  // namespace

KeySection gossip_keys() {
  const In in(&Config::gossip);
  return {
      .path = "gossip",
      .keys = {
          in.key("pull_probability", &GossipConfig::pull_probability, number(0, 1),
                 "chance that a step begins a pull, when none is under way",
                 {.alias = "fetch_probability", .reloads = true}),
          in.key("timeout_ms", &GossipConfig::timeout, duration_above_0(),
                 "the limit of a whole pull, with the attempts at other peers after a failure",
                 {.comment = "limit of a whole pull: connect, request, reply", .reloads = true}),
          in.key("step_budget_ms", &GossipConfig::step_budget, duration_from_0(),
                 "the longest wait of `step` for the network. A reply that arrives later is "
                 "blended at a later step",
                 {.reloads = true}),
          in.key("blend", &GossipConfig::blend, choice(blend_words),
                 "`delta` keeps the learning rate, `lerp` is the original's rule "
                 "([ALGORITHMS.md](ALGORITHMS.md))",
                 {.comment = "delta: x + f (peer - own snapshot) | lerp: the original's (1-f) x + "
                             "f peer"}),
          in.key("ledger", &GossipConfig::ledger, boolean(),
                 "`true`: each pair of nodes takes equally much from each other, which keeps the "
                 "[mean of all nodes at any pace](ALGORITHMS.md#the-pair-ledger). For `blend: "
                 "delta` and method `constant` without a threshold"),
          in.key("blocks", &GossipConfig::blocks, whole(1, max_blocks, "a count"),
                 "the number of [parts](ALGORITHMS.md#blocks) that the model is divided into. Each "
                 "pull transfers one of them, in turn. An error when the model is too small"),
          in.key("max_staleness", &GossipConfig::max_staleness, number(0, unbounded),
                 "a peer whose clock lags by more steps is skipped; 0 = no bound"),
          in.key("final_average", &GossipConfig::final_average, boolean(),
                 "one average over all nodes at the end, without those that are [too far "
                 "away](FIREWALL.md#distance-bound)",
                 {.comment = "one average over all nodes at the end", .reloads = true}),
          in.key("daemon", &GossipConfig::daemon, boolean(),
                 "the network side of each node is a separate process, `dpwa node` "
                 "([OPERATIONS.md](OPERATIONS.md#node-processes))"),
          in.key("seed", &GossipConfig::seed,
                 optional_whole<std::uint64_t>(0, std::numeric_limits<std::int64_t>::max(),
                                               "a number"),
                 "for a node's choice of peers, its first block, and the steps at which it pulls; "
                 "each node derives its own streams. Unset: different from start to start; "
                 "`dpwa-train` uses its `--seed`. Two runs still make [not the same "
                 "pulls](ALGORITHMS.md#what-does-not-hold)"),
          in.key("start_wait_ms", &GossipConfig::start_wait, duration_from_0(),
                 "the longest wait at the start: for a free port, for a node process, for nodes "
                 "that do not answer, and until all nodes have the common weights",
                 {.comment = "longest wait at the start for the other nodes", .reloads = true}),
          in.key(
              "finish_wait_ms", &GossipConfig::finish_wait, duration_from_0(),
              "the longest wait at the end for nodes that still train; `finish()` takes at most "
              "three times as long",
              {.comment = "longest wait at the end for nodes that still train", .reloads = true}),
          in.key("min_nodes", &GossipConfig::min_nodes, whole(1, 65536, "a count of nodes"),
                 "the nodes, this one included, that must run at the start and take part in the "
                 "final average; fewer are an error",
                 {.comment = "fewer nodes at the start or in the final average are an error"}),
      }};
}

KeySection firewall_keys() {
  const In in(&Config::gossip, &GossipConfig::firewall);
  return {.path = "gossip.firewall",
          .layout = Layout::flow,
          .keys = {
              in.key("distance", &FirewallOptions::distance, choice(distance_words),
                     "what happens to parameters beyond the bound",
                     {.comment = "distance: off | warn | clip | refuse parameters much farther "
                                 "away than usual"}),
          }};
}

KeySection membership_keys() {
  const In in(&Config::gossip, &GossipConfig::membership);
  return {.path = "gossip.membership",
          .layout = Layout::flow,
          .keys = {
              in.key("join", &MembershipOptions::open, choice(join_words),
                     "`closed`: nodes that are not in the file are refused",
                     {.comment = "join: open | closed to nodes that are not in this file"}),
              in.key("suspect_ms", &MembershipOptions::suspect, duration_above_0(),
                     "a node that three pulls in a row did not reach is suspect. It counts as dead "
                     "when there is no news of it for this time (with n > 10 nodes: log₁₀ n times "
                     "as long). Dead nodes are not pulled from, but still checked now and then"),
          }};
}

}  // namespace dpwa::config
