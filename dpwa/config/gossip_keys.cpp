#include <cstdint>
#include <limits>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "dpwa/rules/distance_bound.h"
#include "dpwa/rules/options.h"

namespace dpwa::config {

KeySection gossip_keys() {
  const In in(&Config::gossip);
  return {
      .path = "gossip",
      .keys = {
          in.key("pull_probability", &GossipConfig::pull_probability, number(0, 1),
                 "chance that a step begins a pull (the original's name: fetch_probability)",
                 {.reference = "chance that a step begins a pull, when none is under way",
                  .sample = "1.0",
                  .alias = "fetch_probability",
                  .reloads = true}),
          in.key("timeout_ms", &GossipConfig::timeout, duration_above_0(),
                 "limit of a whole pull: connect, request, reply",
                 {.reference =
                      "the limit of a whole pull, with the attempts at other peers after a failure",
                  .reloads = true}),
          in.key("step_budget_ms", &GossipConfig::step_budget, duration_from_0(),
                 "longest wait of step() for the network; 0 = blend at a later step",
                 {.reference = "the longest wait of `step` for the network. A reply that arrives "
                               "later is blended at a later step",
                  .reloads = true}),
          in.key("blend", &GossipConfig::blend, choice(blend_words),
                 "delta: x + f (peer - own snapshot) | lerp: the original's (1-f) x + f peer",
                 {.reference = "`delta` keeps the learning rate, `lerp` is the original's rule "
                               "([ALGORITHMS.md](ALGORITHMS.md))"}),
          in.key("ledger", &GossipConfig::ledger, boolean(),
                 "true: keeps the mean of all nodes at any pace (delta and a constant factor only)",
                 {.reference =
                      "`true`: each pair of nodes takes equally much from each other, which keeps "
                      "the [mean of all nodes at any pace](ALGORITHMS.md#the-pair-ledger). For "
                      "`blend: delta` and method `constant` without a threshold"}),
          in.key("blocks", &GossipConfig::blocks, whole(1, max_blocks, "a count"),
                 "parts of the model, 1 to 64; each pull transfers one of them, in turn",
                 {.reference = "the number of [parts](ALGORITHMS.md#blocks) that the model is "
                               "divided into. Each pull transfers one of them, in turn. An error "
                               "when the model is too small"}),
          in.key("max_staleness", &GossipConfig::max_staleness, number(0, unbounded),
                 "steps that a peer may lag; 0 = no bound",
                 {.reference = "a peer whose clock lags by more steps is skipped; 0 = no bound"}),
          in.key("max_frozen_ms", &GossipConfig::max_frozen, duration_from_0(),
                 "a peer whose clock has not advanced for this long is skipped; 0 = no bound",
                 {.reference = "a peer whose clock has not advanced for this long, while this "
                               "node's clock has, is skipped; 0 = no bound"}),
          in.key("final_average", &GossipConfig::final_average, boolean(),
                 "one average over all nodes at the end",
                 {.reference =
                      "one average over all nodes at the end, without those that are [too far "
                      "away](FIREWALL.md#distance-bound)",
                  .reloads = true}),
          in.key("daemon", &GossipConfig::daemon, boolean(),
                 "true: the network side of a node is a separate process, dpwa node",
                 {.reference = "the network side of each node is a separate process, `dpwa node` "
                               "([OPERATIONS.md](OPERATIONS.md#node-processes))",
                  .listed_last = true}),
          in.key(
              "seed", &GossipConfig::seed,
              whole(0, std::numeric_limits<std::int64_t>::max(), "a number"),
              "seed for the choice of peers and of the steps that pull; unset: from the clock",
              {.reference = "for a node's choice of peers, its first block, and the steps at which "
                            "it pulls; each node derives its own streams. Unset: different from "
                            "start to start; `dpwa-train` uses its `--seed`. Two runs still make "
                            "[not the same pulls](ALGORITHMS.md#what-does-not-hold)",
               .sample = "1",
               .listed_last = true}),
          in.key("start_wait_ms", &GossipConfig::start_wait, duration_from_0(),
                 "longest wait at the start for the other nodes",
                 {.reference =
                      "the longest wait at the start: for a free port, for a node process, for "
                      "nodes that do not answer, and until all nodes have the common weights",
                  .reloads = true}),
          in.key("finish_wait_ms", &GossipConfig::finish_wait, duration_from_0(),
                 "longest wait at the end for nodes that still train",
                 {.reference = "the longest wait at the end for nodes that still train; `finish()` "
                               "takes at most three times as long",
                  .reloads = true}),
          in.key("min_nodes", &GossipConfig::min_nodes, whole(1, 65536, "a count of nodes"),
                 "fewer nodes at the start or in the final average are an error",
                 {.reference = "the nodes, this one included, that must run at the start and take "
                               "part in the final average; fewer are an error"}),
      }};
}

KeySection flow_control_keys() {
  const In in(&Config::gossip, &GossipConfig::flow_control);
  return {
      .path = "gossip.flow_control",
      .layout = Layout::flow,
      .above =
          {"Scores of peers; a pull goes to the peer with the highest score plus a random number."},
      .keys =
          {
              in.key("initial", &FlowControl::initial, number(0, unbounded),
                     "score at the start, and when a peer returns"),
              in.key("min", &FlowControl::min, number(0, unbounded), "lower bound"),
              in.key("max", &FlowControl::max, number(0, unbounded), "upper bound"),
              in.key("on_success", &FlowControl::on_success, number(0, unbounded),
                     "added after a successful pull"),
              in.key("on_failure", &FlowControl::on_failure, number(-unbounded, 0),
                     "added after a timeout, a refused or broken connection, a broken frame, or a "
                     "[late](ALGORITHMS.md#which-peer) answer"),
              in.key("recovery_per_second", &FlowControl::recovery_per_second, number(0, unbounded),
                     "points that a score regains per second after failures, up to `initial`; 0 = "
                     "none, as in the original"),
          },
      .check = [](const Section& section, const Config& config) {
        const FlowControl& flow = config.gossip.flow_control;
        if (flow.min > flow.initial || flow.initial > flow.max)
          section.fail("the bounds do not hold together; accepted: min <= initial <= max");
      }};
}

KeySection firewall_keys() {
  const In in(&Config::gossip, &GossipConfig::firewall);
  return {
      .path = "gossip.firewall",
      .layout = Layout::flow,
      .above = {"Checks before a blend. distance: off | warn | clip | refuse parameters farther "
                "away than",
                "distance_multiple times the median; a peer with three offences in a row is not "
                "asked for a while."},
      .keys =
          {
              in.key("distance", &FirewallOptions::distance, choice(distance_words),
                     "what happens to parameters beyond the bound"),
              in.key("distance_multiple", &FirewallOptions::distance_multiple, number(1, unbounded),
                     "the bound, as a multiple of the median of recent distances"),
              in.key("distance_samples", &FirewallOptions::distance_samples,
                     whole(1, DistanceBound::window, "a count"),
                     "number of distances after which the bound is narrow; until then it is five "
                     "times as wide, and as long as only one peer has been heard, its distance is "
                     "only measured"),
              in.key("quarantine_after", &FirewallOptions::quarantine_after,
                     whole(0, 1000, "a count"),
                     "number of offences in a row after which a peer is in quarantine: not asked "
                     "for a while; 0 = never"),
              in.key("quarantine_ms", &FirewallOptions::quarantine, duration_above_0(),
                     "length of the first quarantine, but at least as long as 20 pulls usually "
                     "take; each later one is twice as long"),
              in.key("quarantine_max_ms", &FirewallOptions::quarantine_max, duration_above_0(),
                     "the longest quarantine"),
          },
      .check = [](const Section& section, const Config& config) {
        const FirewallOptions& options = config.gossip.firewall;
        if (options.quarantine > options.quarantine_max)
          section.fail(
              "the bounds do not hold together; accepted: quarantine_ms <= quarantine_max_ms");
      }};
}

KeySection membership_keys() {
  const In in(&Config::gossip, &GossipConfig::membership);
  return {.path = "gossip.membership",
          .layout = Layout::flow,
          .above = {"Who takes part besides the nodes of this file. join: open | closed to nodes "
                    "started with --join."},
          .keys = {
              in.key("join", &MembershipOptions::open, choice(join_words),
                     "`closed`: nodes that are not in the file are refused"),
              in.key("suspect_ms", &MembershipOptions::suspect, duration_above_0(),
                     "a node that three pulls in a row did not reach is suspect. It counts as dead "
                     "when there is no news of it for this time (with n > 10 nodes: log₁₀ n times "
                     "as long). Dead nodes are not pulled from, but still checked now and then"),
              in.key("forget_ms", &MembershipOptions::forget, duration_above_0(),
                     "a node that joined, and is dead or has left, is forgotten after this time; "
                     "the nodes of the file never are"),
              in.key("max_members", &MembershipOptions::max_members, whole(1, 65536, "a count"),
                     "the most nodes known at once; when the table is full, dead nodes make room "
                     "first, then nodes that are known only from other nodes' reports"),
          }};
}

}  // namespace dpwa::config
