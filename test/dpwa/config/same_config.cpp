#include "test/dpwa/config/same_config.h"

#include <doctest/doctest.h>

namespace dpwa::test {
namespace {

void check_same_gossip(const GossipConfig& a, const GossipConfig& b) {
  CHECK(a.pull_probability == b.pull_probability);
  CHECK(a.timeout == b.timeout);
  CHECK(a.step_budget == b.step_budget);
  CHECK(a.blend == b.blend);
  CHECK(a.max_staleness == b.max_staleness);
  CHECK(a.max_frozen == b.max_frozen);
  CHECK(a.final_average == b.final_average);
  CHECK(a.daemon == b.daemon);
  CHECK(a.seed == b.seed);
  CHECK(a.start_wait == b.start_wait);
  CHECK(a.finish_wait == b.finish_wait);
  CHECK(a.min_nodes == b.min_nodes);
  CHECK(a.flow_control.initial == b.flow_control.initial);
  CHECK(a.flow_control.min == b.flow_control.min);
  CHECK(a.flow_control.max == b.flow_control.max);
  CHECK(a.flow_control.on_success == b.flow_control.on_success);
  CHECK(a.flow_control.on_failure == b.flow_control.on_failure);
  CHECK(a.flow_control.recovery_per_second == b.flow_control.recovery_per_second);
  CHECK(a.firewall.distance == b.firewall.distance);
  CHECK(a.firewall.distance_multiple == b.firewall.distance_multiple);
  CHECK(a.firewall.distance_samples == b.firewall.distance_samples);
  CHECK(a.firewall.quarantine_after == b.firewall.quarantine_after);
  CHECK(a.firewall.quarantine == b.firewall.quarantine);
  CHECK(a.firewall.quarantine_max == b.firewall.quarantine_max);
  CHECK(a.membership.open == b.membership.open);
  CHECK(a.membership.suspect == b.membership.suspect);
  CHECK(a.membership.forget == b.membership.forget);
  CHECK(a.membership.max_members == b.membership.max_members);
}

void check_same_collective(const CollectiveConfig& a, const CollectiveConfig& b) {
  CHECK(a.engine == b.engine);
  CHECK(a.first_bucket_bytes == b.first_bucket_bytes);
  CHECK(a.bucket_bytes == b.bucket_bytes);
  CHECK(a.compression == b.compression);
  CHECK(a.average_buffers == b.average_buffers);
  CHECK(a.plaintext == b.plaintext);
  CHECK(a.start_wait == b.start_wait);
  CHECK(a.hung_after == b.hung_after);
  CHECK(a.lost_after == b.lost_after);
  CHECK(a.on_lost_rank == b.on_lost_rank);
  CHECK(a.minority == b.minority);
  CHECK(a.stall_warn == b.stall_warn);
}

}  // namespace

void check_same(const Config& a, const Config& b) {
  CHECK(a.cluster == b.cluster);
  REQUIRE(a.nodes.size() == b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    CHECK(a.nodes[i].name == b.nodes[i].name);
    CHECK(a.nodes[i].host == b.nodes[i].host);
    CHECK(a.nodes[i].bind == b.nodes[i].bind);
    CHECK(a.nodes[i].port == b.nodes[i].port);
    CHECK(a.nodes[i].cores == b.nodes[i].cores);
    CHECK(a.nodes[i].addresses == b.nodes[i].addresses);
    CHECK(a.nodes[i].bind_address == b.nodes[i].bind_address);
  }
  CHECK(a.backend == b.backend);
  check_same_gossip(a.gossip, b.gossip);
  check_same_collective(a.collective, b.collective);
  CHECK(a.interpolation.method == b.interpolation.method);
  CHECK(a.interpolation.parameters == b.interpolation.parameters);
  CHECK(a.interpolation.divergence_threshold == b.interpolation.divergence_threshold);
  CHECK(a.security.mode == b.security.mode);
  CHECK(a.security.key_file == b.security.key_file);
  CHECK(a.security.ca == b.security.ca);
  CHECK(a.security.cert == b.security.cert);
  CHECK(a.security.key == b.security.key);
  CHECK(a.transport.same_host == b.transport.same_host);
  CHECK(a.transport.encoding == b.transport.encoding);
  CHECK(a.transport.congestion_control == b.transport.congestion_control);
  CHECK(a.transport.chunk_bytes == b.transport.chunk_bytes);
  CHECK(a.transport.checksum == b.transport.checksum);
  CHECK(a.transport.max_connections == b.transport.max_connections);
  CHECK(a.transport.max_connections_per_address == b.transport.max_connections_per_address);
  CHECK(a.transport.max_connections_per_peer == b.transport.max_connections_per_peer);
  CHECK(a.transport.max_replies == b.transport.max_replies);
  CHECK(a.transport.max_requests_per_second == b.transport.max_requests_per_second);
  CHECK(a.log.level == b.log.level);
  CHECK(a.log.file == b.log.file);
}

}  // namespace dpwa::test
