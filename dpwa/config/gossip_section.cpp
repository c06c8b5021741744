#include <limits>

#include "dpwa/config/sections.h"
#include "dpwa/rules/distance_bound.h"
#include "dpwa/snapshot/blocks.h"

namespace dpwa::config {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

void read_flow_control(const Section& section, FlowControl& flow) {
  section.accept_only({"initial", "min", "max", "on_success", "on_failure", "recovery_per_second"});
  if (const Field* field = section.find("min")) flow.min = field->number(0, unbounded);
  if (const Field* field = section.find("max")) flow.max = field->number(0, unbounded);
  if (const Field* field = section.find("initial")) flow.initial = field->number(0, unbounded);
  if (const Field* field = section.find("on_success"))
    flow.on_success = field->number(0, unbounded);
  if (const Field* field = section.find("on_failure"))
    flow.on_failure = field->number(-unbounded, 0);
  if (const Field* field = section.find("recovery_per_second"))
    flow.recovery_per_second = field->number(0, unbounded);
}

void check_flow_control(const Field& field, const FlowControl& flow) {
  if (flow.min > flow.initial || flow.initial > flow.max) {
    field.fail("the bounds do not hold together; accepted: min <= initial <= max");
  }
}

void read_firewall(const Section& section, FirewallOptions& firewall) {
  section.accept_only({"distance", "distance_multiple", "distance_samples", "quarantine_after",
                       "quarantine_ms", "quarantine_max_ms"});
  if (const Field* field = section.find("distance")) {
    const std::string policy = field->choice({"off", "warn", "clip", "refuse"});
    firewall.distance = policy == "off"    ? DistancePolicy::off
                        : policy == "warn" ? DistancePolicy::warn
                        : policy == "clip" ? DistancePolicy::clip
                                           : DistancePolicy::refuse;
  }
  if (const Field* field = section.find("distance_multiple"))
    firewall.distance_multiple = field->number(1, unbounded);
  if (const Field* field = section.find("distance_samples")) {
    firewall.distance_samples =
        static_cast<std::uint32_t>(field->integer(1, DistanceBound::window, "a count"));
  }
  if (const Field* field = section.find("quarantine_after"))
    firewall.quarantine_after = static_cast<std::uint32_t>(field->integer(0, 1000, "a count"));
  if (const Field* field = section.find("quarantine_ms"))
    firewall.quarantine = field->positive_ms();
  if (const Field* field = section.find("quarantine_max_ms"))
    firewall.quarantine_max = field->positive_ms();
}

void check_firewall(const Field& field, const FirewallOptions& firewall) {
  if (firewall.quarantine > firewall.quarantine_max) {
    field.fail("the bounds do not hold together; accepted: quarantine_ms <= quarantine_max_ms");
  }
}

void read_membership(const Section& section, MembershipConfig& membership) {
  section.accept_only({"join", "suspect_ms", "forget_ms", "max_members"});
  if (const Field* field = section.find("join"))
    membership.open = field->choice({"open", "closed"}) == "open";
  if (const Field* field = section.find("suspect_ms")) membership.suspect = field->positive_ms();
  if (const Field* field = section.find("forget_ms")) membership.forget = field->positive_ms();
  if (const Field* field = section.find("max_members"))
    membership.max_members = static_cast<std::uint32_t>(field->integer(1, 65536, "a count"));
}

}  // namespace

double read_probability(const Field& field) {
  return field.number(0, 1);
}

const std::vector<std::string>& gossip_keys() {
  static const std::vector<std::string> keys = {
      "pull_probability", "timeout_ms",     "step_budget_ms", "blend",
      "blocks",           "max_staleness",  "max_frozen_ms",  "final_average",
      "start_wait_ms",    "finish_wait_ms", "min_nodes",      "flow_control",
      "firewall",         "membership",     "daemon",         "seed",
      "fetch_probability"};
  return keys;
}

void read_gossip(const Section& section, GossipConfig& gossip) {
  section.accept_only(gossip_keys());
  const Field* alias = section.find("fetch_probability");
  if (const Field* field = section.find("pull_probability")) {
    if (alias)
      alias->fail("the same as 'pull_probability', which is given too; accepted: one of them");
    gossip.pull_probability = read_probability(*field);
  }
  if (alias) gossip.pull_probability = read_probability(*alias);
  if (const Field* field = section.find("timeout_ms")) gossip.timeout = field->positive_ms();
  if (const Field* field = section.find("step_budget_ms")) {
    gossip.step_budget = field->non_negative_ms();
  }
  if (const Field* field = section.find("blend")) {
    gossip.blend = field->choice({"delta", "lerp"}) == "lerp" ? BlendMode::lerp : BlendMode::delta;
  }
  if (const Field* field = section.find("blocks")) {
    gossip.blocks = static_cast<std::uint32_t>(field->integer(1, max_blocks, "a count"));
  }
  if (const Field* field = section.find("max_staleness")) {
    gossip.max_staleness = field->number(0, unbounded);
  }
  if (const Field* field = section.find("max_frozen_ms"))
    gossip.max_frozen = field->non_negative_ms();
  if (const Field* field = section.find("final_average")) gossip.final_average = field->boolean();
  if (const Field* field = section.find("daemon")) gossip.daemon = field->boolean();
  if (const Field* field = section.find("seed")) {
    const auto most = std::numeric_limits<std::int64_t>::max();
    gossip.seed = static_cast<std::uint64_t>(field->integer(0, most, "a number"));
  }
  if (const Field* field = section.find("start_wait_ms"))
    gossip.start_wait = field->non_negative_ms();
  if (const Field* field = section.find("finish_wait_ms"))
    gossip.finish_wait = field->non_negative_ms();
  if (const Field* field = section.find("min_nodes"))
    gossip.min_nodes = static_cast<std::uint32_t>(field->integer(1, 65536, "a count of nodes"));
  if (const Field* field = section.find("flow_control")) {
    read_flow_control(Section(*field), gossip.flow_control);
    check_flow_control(*field, gossip.flow_control);
  }
  if (const Field* field = section.find("firewall")) {
    read_firewall(Section(*field), gossip.firewall);
    check_firewall(*field, gossip.firewall);
  }
  if (const Field* field = section.find("membership"))
    read_membership(Section(*field), gossip.membership);
}

}  // namespace dpwa::config
