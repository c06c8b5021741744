#include <yaml-cpp/yaml.h>

#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/config/names.h"
#include "dpwa/config/text.h"
#include "dpwa/config/units.h"

namespace dpwa {

namespace {

using config::milliseconds_text;
using config::number_text;

const char* policy_name(DistancePolicy policy) {
  switch (policy) {
    case DistancePolicy::off:
      return "off";
    case DistancePolicy::warn:
      return "warn";
    case DistancePolicy::clip:
      return "clip";
    case DistancePolicy::refuse:
      return "refuse";
  }
  return "";
}

template <class Value>
void pair(YAML::Emitter& out, const std::string& key, const Value& value) {
  out << YAML::Key << key << YAML::Value << value;
}

void emit_node(YAML::Emitter& out, const NodeEntry& node) {
  out << YAML::Flow << YAML::BeginMap;
  pair(out, "name", node.name);
  pair(out, "host", node.host);
  if (!node.bind.empty()) pair(out, "bind", node.bind);
  pair(out, "port", node.port);
  if (!node.cores.empty()) out << YAML::Key << "cores" << YAML::Value << YAML::Flow << node.cores;
  out << YAML::EndMap;
}

void emit_firewall(YAML::Emitter& out, const FirewallOptions& firewall) {
  out << YAML::Key << "firewall" << YAML::Value << YAML::Flow << YAML::BeginMap;
  pair(out, "distance", policy_name(firewall.distance));
  pair(out, "distance_multiple", number_text(firewall.distance_multiple));
  pair(out, "distance_samples", firewall.distance_samples);
  pair(out, "quarantine_after", firewall.quarantine_after);
  pair(out, "quarantine_ms", milliseconds_text(firewall.quarantine));
  pair(out, "quarantine_max_ms", milliseconds_text(firewall.quarantine_max));
  out << YAML::EndMap;
}

void emit_membership(YAML::Emitter& out, const MembershipConfig& membership) {
  out << YAML::Key << "membership" << YAML::Value << YAML::Flow << YAML::BeginMap;
  pair(out, "join", membership.open ? "open" : "closed");
  pair(out, "suspect_ms", milliseconds_text(membership.suspect));
  pair(out, "forget_ms", milliseconds_text(membership.forget));
  pair(out, "max_members", membership.max_members);
  out << YAML::EndMap;
}

void emit_gossip(YAML::Emitter& out, const GossipConfig& gossip) {
  out << YAML::Key << "gossip" << YAML::Value << YAML::BeginMap;
  pair(out, "pull_probability", number_text(gossip.pull_probability));
  pair(out, "timeout_ms", milliseconds_text(gossip.timeout));
  pair(out, "step_budget_ms", milliseconds_text(gossip.step_budget));
  pair(out, "blend", gossip.blend == BlendMode::lerp ? "lerp" : "delta");
  pair(out, "blocks", gossip.blocks);
  pair(out, "max_staleness", number_text(gossip.max_staleness));
  pair(out, "max_frozen_ms", milliseconds_text(gossip.max_frozen));
  pair(out, "final_average", gossip.final_average);
  pair(out, "daemon", gossip.daemon);
  if (gossip.seed) pair(out, "seed", *gossip.seed);
  pair(out, "start_wait_ms", milliseconds_text(gossip.start_wait));
  pair(out, "finish_wait_ms", milliseconds_text(gossip.finish_wait));
  pair(out, "min_nodes", gossip.min_nodes);
  const FlowControl& flow = gossip.flow_control;
  out << YAML::Key << "flow_control" << YAML::Value << YAML::Flow << YAML::BeginMap;
  pair(out, "initial", number_text(flow.initial));
  pair(out, "min", number_text(flow.min));
  pair(out, "max", number_text(flow.max));
  pair(out, "on_success", number_text(flow.on_success));
  pair(out, "on_failure", number_text(flow.on_failure));
  pair(out, "recovery_per_second", number_text(flow.recovery_per_second));
  out << YAML::EndMap;
  emit_firewall(out, gossip.firewall);
  emit_membership(out, gossip.membership);
  out << YAML::EndMap;
}

void emit_collective(YAML::Emitter& out, const CollectiveConfig& collective) {
  out << YAML::Key << "collective" << YAML::Value << YAML::BeginMap;
  pair(out, "engine", config::name_of(collective.engine));
  pair(out, "first_bucket_bytes", collective.first_bucket_bytes);
  pair(out, "bucket_bytes", collective.bucket_bytes);
  pair(out, "compression", config::name_of(collective.compression));
  pair(out, "average_buffers", collective.average_buffers);
  pair(out, "plaintext", collective.plaintext);
  pair(out, "start_wait_ms", milliseconds_text(collective.start_wait));
  pair(out, "hung_after_ms", milliseconds_text(collective.hung_after));
  pair(out, "stall_warn_ms", milliseconds_text(collective.stall_warn));
  pair(out, "lost_after_ms", milliseconds_text(collective.lost_after));
  pair(out, "on_lost_rank", config::name_of(collective.on_lost_rank));
  pair(out, "minority", config::name_of(collective.minority));
  out << YAML::EndMap;
}

void emit_interpolation(YAML::Emitter& out, const InterpolationConfig& interpolation) {
  out << YAML::Key << "interpolation" << YAML::Value << YAML::BeginMap;
  pair(out, "method", interpolation.method);
  for (const auto& [name, value] : interpolation.parameters) pair(out, name, number_text(value));
  pair(out, "divergence_threshold", number_text(interpolation.divergence_threshold));
  out << YAML::EndMap;
}

void emit_transport(YAML::Emitter& out, const TransportConfig& transport) {
  out << YAML::Key << "transport" << YAML::Value << YAML::BeginMap;
  pair(out, "same_host", transport.same_host ? "auto" : "off");
  pair(out, "encoding", std::string(name_of(transport.encoding)));
  pair(out, "congestion_control", transport.congestion_control);
  pair(out, "chunk_bytes", transport.chunk_bytes);
  pair(out, "checksum", transport.checksum ? "on" : "off");
  pair(out, "max_connections", transport.max_connections);
  pair(out, "max_connections_per_address", transport.max_connections_per_address);
  pair(out, "max_connections_per_peer", transport.max_connections_per_peer);
  pair(out, "max_replies", transport.max_replies);
  pair(out, "max_requests_per_second", transport.max_requests_per_second);
  out << YAML::EndMap;
}

}  // namespace

std::string to_yaml(const Config& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  pair(out, "cluster", config.cluster);
  if (!config.nodes.empty()) {  // a launcher's otherwise
    out << YAML::Key << "nodes" << YAML::Value << YAML::BeginSeq;
    for (const NodeEntry& node : config.nodes) emit_node(out, node);
    out << YAML::EndSeq;
  }
  pair(out, "backend", config::name_of(config.backend));
  emit_gossip(out, config.gossip);
  emit_collective(out, config.collective);
  emit_interpolation(out, config.interpolation);
  const SecurityConfig& security = config.security;
  if (!security.mode.empty()) {
    out << YAML::Key << "security" << YAML::Value << YAML::Flow << YAML::BeginMap;
    pair(out, "mode", security.mode);
    for (const auto& [key, path] :
         {std::pair{"key_file", security.key_file}, std::pair{"ca", security.ca},
          std::pair{"cert", security.cert}, std::pair{"key", security.key}}) {
      if (!path.empty()) out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << path;
    }
    out << YAML::EndMap;
  }
  emit_transport(out, config.transport);
  out << YAML::Key << "log" << YAML::Value << YAML::Flow << YAML::BeginMap;
  pair(out, "level", config.log.level);
  pair(out, "file", config.log.file);
  out << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace dpwa
