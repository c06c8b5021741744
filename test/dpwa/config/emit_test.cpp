#include <doctest/doctest.h>

#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

void check_round_trip(const std::string& text) {
  CAPTURE(text);
  const ScratchFile first(text);
  const Config loaded = load_cluster(first.path());
  const std::string emitted = to_yaml(loaded);
  CAPTURE(emitted);
  const ScratchFile second(emitted);
  const Config again = load_cluster(second.path());
  check_same(loaded, again);
  CHECK(to_yaml(again) == emitted);
}

}  // namespace

TEST_CASE("the effective configuration loads back to the same configuration") {
  check_round_trip("nodes: [{name: a, port: 1}]\n");
  check_round_trip(R"(
cluster: "1"
nodes:
  - {name: "null", host: "::1", port: 24000, cores: [3, 1]}
  - {name: "true", host: 10.0.0.2, bind: "::", port: 24001}
backend: null
gossip:
  pull_probability: 0.1
  timeout_ms: 123456us
  step_budget_ms: 0.000001
  blend: lerp
  max_staleness: 1e20
  max_frozen_ms: 24h
  final_average: false
  seed: 9223372036854775807
  start_wait_ms: 0
  finish_wait_ms: 3.3
  min_nodes: 7
  flow_control: {initial: 3.5, min: 0, max: 1e9, on_success: 0.1, on_failure: -1e-3, recovery_per_second: 0.7}
  firewall: {distance: off, distance_multiple: 2.7, distance_samples: 32, quarantine_after: 0, quarantine_ms: 0.1, quarantine_max_ms: 24h}
  membership: {join: closed, suspect_ms: 0.3, forget_ms: 90s, max_members: 12}
interpolation: {method: linear, start: 0.30000000000000004, end: 0, target: 12345678.9, divergence_threshold: 1e-300}
security: {mode: insecure}
transport: {same_host: off, congestion_control: cubic, chunk_bytes: 4KiB, checksum: off, max_connections: 1, max_connections_per_address: 2, max_connections_per_peer: 3, max_replies: 65535, max_requests_per_second: 0}
log: {level: off, file: "a: \"b\" #c\n\td"}
)");
}

TEST_CASE("the files of a security mode come back") {
  check_round_trip(
      "nodes: [{name: a, port: 1}]\nsecurity: {mode: psk, key_file: \"a \\\"b\\\"/{name}\"}\n");
  check_round_trip(
      "nodes: [{name: a, port: 1}]\n"
      "security: {mode: mtls, ca: ../ca.pem, cert: \"/c/{name}.pem\", key: k}\n");
}

TEST_CASE("the original's form comes back in the map form with the same meaning") {
  check_round_trip(R"(
- nodes: [{name: a, host: localhost, port: 1}]
- timeout_ms: 250
- fetch_probability: 0.5
- interpolation: constant
- divergence_threshold: 0.2
- constant: {value: 0.25}
- loss: 0
)");
}
