#include <cstdint>
#include <limits>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "dpwa/rules/distance_bound.h"
#include "dpwa/snapshot/blocks.h"

namespace dpwa::config {

KeySection gossip_keys() {
  const In in(&Config::gossip);
  return {
      .path = "gossip",
      .keys = {
          in.key("pull_probability", &GossipConfig::pull_probability, number(0, 1),
                 "of beginning a pull at a step (alias of the original: fetch_probability)",
                 {.reference = "chance that a step begins a pull, when none is under way",
                  .sample = "1.0",
                  .alias = "fetch_probability",
                  .reloads = true}),
          in.key("timeout_ms", &GossipConfig::timeout, duration_above_0(),
                 "whole pull: connect, request, reply",
                 {.reference = "the one deadline of a pull: connect, handshake, request, reply, "
                               "and the tries at other peers after a failure",
                  .reloads = true}),
          in.key("step_budget_ms", &GossipConfig::step_budget, duration_from_0(),
                 "longest wait of step() for the network; 0 = blend at a later step",
                 {.reference = "the longest that `step` waits for the network; 0 = never: what "
                               "has not arrived is blended at a later step",
                  .reloads = true}),
          in.key("blend", &GossipConfig::blend, choice(blend_words),
                 "delta: x + f (peer - own snapshot) | lerp: the original's (1-f) x + f peer",
                 {.reference = "`delta` keeps the learning rate, `lerp` is the original's rule "
                               "([ALGORITHMS.md](ALGORITHMS.md))"}),
          in.key("blocks", &GossipConfig::blocks, whole(1, max_blocks, "a count"),
                 "parts of the model, 1 to 64; a pull brings one of them, in turn",
                 {.reference = "the model is cut into so many [parts of nearly equal "
                               "size](ALGORITHMS.md#blocks), and every pull brings one of them, "
                               "in turn: less traffic a pull; the step report and the metrics "
                               "say which. An error when the model is too small for so many"}),
          in.key("max_staleness", &GossipConfig::max_staleness, number(0, unbounded),
                 "steps that a peer may lag; 0 = no bound",
                 {.reference = "a peer whose clock lags by more steps is not blended; 0 = no "
                               "bound"}),
          in.key("max_frozen_ms", &GossipConfig::max_frozen, duration_from_0(),
                 "a peer whose clock stands still for so long is not blended; 0 = no bound",
                 {.reference = "a peer whose clock stands still for so long, while the own one "
                               "moves, is not blended; 0 = no bound"}),
          in.key("final_average", &GossipConfig::final_average, boolean(),
                 "one average over all nodes at the end", {.reloads = true}),
          in.key("daemon", &GossipConfig::daemon, boolean(),
                 "true: the network side of a node is a process of its own, dpwa node",
                 {.reference = "the network side of each node is a process of its own, `dpwa "
                               "node`, that trainers attach to "
                               "([OPERATIONS.md](OPERATIONS.md#node-processes))",
                  .listed_last = true}),
          in.key("seed", &GossipConfig::seed,
                 whole(0, std::numeric_limits<std::int64_t>::max(), "a number"),
                 "of the choice of peers and of when to pull; without it from the clock",
                 {.reference = "of the node's choice of peers, of the first block, and of the "
                               "moments at which it pulls; each node draws streams of its own from "
                               "it and its name. Without it they differ from start to start; "
                               "`dpwa-train` takes its `--seed` then. With it two runs make the "
                               "same choices as long as the same peers answer: [not the same "
                               "pulls](ALGORITHMS.md#what-does-not-hold)",
                  .sample = "1",
                  .listed_last = true}),
          in.key("start_wait_ms", &GossipConfig::start_wait, duration_from_0(),
                 "longest wait at the start for the other nodes",
                 {.reference = "the longest wait at the start, from `start()` on: for a free port, "
                               "for a node process, for nodes that do not answer, and until all "
                               "have the common weights",
                  .reloads = true}),
          in.key("finish_wait_ms", &GossipConfig::finish_wait, duration_from_0(),
                 "longest wait at the end for nodes that still train",
                 {.reference = "the longest wait at the end for nodes that still train; "
                               "`finish()` takes three times as long at most",
                  .reloads = true}),
          in.key("min_nodes", &GossipConfig::min_nodes, whole(1, 65536, "a count of nodes"),
                 "fewer at the start, or in the final average, are an error",
                 {.reference = "this node included, so many must run when it begins, and take "
                               "part in the final average; fewer are an error"}),
      }};
}

KeySection flow_control_keys() {
  const In in(&Config::gossip, &GossipConfig::flow_control);
  return {
      .path = "gossip.flow_control",
      .layout = Layout::flow,
      .above = {"Scores of peers; the best score plus a random number is chosen."},
      .keys =
          {
              in.key("initial", &FlowControl::initial, number(0, unbounded),
                     "at the start, and when a peer returns"),
              in.key("min", &FlowControl::min, number(0, unbounded), "lower bound"),
              in.key("max", &FlowControl::max, number(0, unbounded), "upper bound"),
              in.key("on_success", &FlowControl::on_success, number(0, unbounded),
                     "added after a pull that succeeded"),
              in.key("on_failure", &FlowControl::on_failure, number(-unbounded, 0),
                     "added after a timeout, a refused or broken connection, a broken frame, and "
                     "an answer that came [late](ALGORITHMS.md#which-peer)"),
              in.key("recovery_per_second", &FlowControl::recovery_per_second, number(0, unbounded),
                     "what time gives back of the points that failures took, up to `initial`; 0 = "
                     "nothing, as in the original"),
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
      .above = {"Before anything is blended. distance: off | warn | clip | refuse, of parameters "
                "further away than",
                "distance_multiple times the median; three offences in a row: not asked for a "
                "while."},
      .keys =
          {
              in.key("distance", &FirewallOptions::distance, choice(distance_words),
                     "what becomes of parameters beyond the bound"),
              in.key("distance_multiple", &FirewallOptions::distance_multiple, number(1, unbounded),
                     "the bound, in medians of recent distances"),
              in.key("distance_samples", &FirewallOptions::distance_samples,
                     whole(1, DistanceBound::window, "a count"),
                     "distances needed before the bound is narrow; until then it is five times as "
                     "wide, and a first peer alone is only measured"),
              in.key("quarantine_after", &FirewallOptions::quarantine_after,
                     whole(0, 1000, "a count"),
                     "offences in a row after which a peer is not asked for a while; 0 = never"),
              in.key("quarantine_ms", &FirewallOptions::quarantine, duration_above_0(),
                     "for how long, the first time, but at least as long as 20 pulls usually "
                     "take; twice as long each later time"),
              in.key("quarantine_max_ms", &FirewallOptions::quarantine_max, duration_above_0(),
                     "at most so long"),
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
  return {
      .path = "gossip.membership",
      .layout = Layout::flow,
      .above = {"Who takes part beside the nodes of this file. join: open | closed, to those who "
                "come with --join."},
      .keys = {
          in.key("join", &MembershipOptions::open, choice(join_words),
                 "`closed`: nodes that are not in the file are refused"),
          in.key("suspect_ms", &MembershipOptions::suspect, duration_above_0(),
                 "a node that three pulls in a row did not reach is suspect, and dead after this "
                 "time (among n > 10 nodes log₁₀ n times as long) unless it is heard of; the dead "
                 "are not pulled from, but looked after"),
          in.key("forget_ms", &MembershipOptions::forget, duration_above_0(),
                 "one that joined and is dead or has left is forgotten after this time; the nodes "
                 "of the file never are"),
          in.key("max_members", &MembershipOptions::max_members, whole(1, 65536, "a count"),
                 "nodes known at once; in a full table the dead make room, then those that nobody "
                 "but others has spoken of"),
      }};
}

}  // namespace dpwa::config
