#include "dpwa/observe/observation_of.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include <cmath>

#include "dpwa/cli/top_table.h"
#include "test/support/temporary_directory.h"

namespace dpwa {
namespace {

using observe::ClusterStatus;
using observe::Json;
using observe::NodeStatus;

Json document() {
  return Json::parse(R"({"node": "w1", "state": "training", "incarnation": 7, "clock": 12.4,
      "loss": 0.25, "pulls_ok": 3, "firewall": {"distance_clipped": 1},
      "steps": {"compute_s": 1.0, "publish_s": 0.25, "blend_s": 0.25, "wait_s": 0.5},
      "host": {"id": "boot", "processors": 2, "busy_s": 4.0, "stolen_s": 0.5},
      "process": {"cpu_s": 1.5, "main_cpu_s": 1.0, "processors": "0-2,8",
        "scheduling_group": "/autogroup-5"},
      "peers": [{"name": "w2", "attempts_ok": 2, "attempts_failed": 1,
                 "last_failure": "unreachable"}, 7],
      "connections": [{"own_port": 1, "port": 2, "rtt_ms": 0.5, "segments_sent": 9}],
      "events": [{"wall": 0.0, "text": "'w2' joined"}, {"wall": 1e300, "text": "never"},
                 {"wall": "x"}, 5]})");
}

NodeStatus answer(unsigned steps) {
  NodeStatus status{"w1", "127.0.0.1:24000", "alive", "", document()};
  status.document["steps"]["count"] = steps;
  status.connected = true;
  return status;
}

NodeStatus silence(bool connected) {
  NodeStatus status{"w2", "127.0.0.1:24001", "-", "no answer in time", Json::object()};
  status.connected = connected;
  return status;
}

}  // namespace

TEST_CASE("an observation has what a status says") {
  const auto observation = observe::observation_of({{answer(40), silence(true)}, {}}, 1.5);
  CHECK(observation.at_s == 1.5);
  const auto& w1 = observation.processes.at("w1");
  CHECK(w1.answers);
  CHECK(w1.trains);
  CHECK(w1.steps == 40);
  CHECK(w1.publish_s == 0.25);
  CHECK(w1.loss == 0.25);
  CHECK(w1.clipped == 1);
  CHECK(w1.main_cpu_s == 1);
  CHECK(w1.group == "/autogroup-5");
  CHECK(w1.processors == std::set<unsigned>{0, 1, 2, 8});
  for (const char* const none : {"", "x", "3-1", "0-99999999", "0-65535,0-65535", "0,"}) {
    CAPTURE(none);
    NodeStatus other = answer(1);
    other.document["process"]["processors"] = none;
    const auto seen = observe::observation_of({{other}, {}}, 1).processes.at("w1").processors;
    CHECK(seen.size() == (std::string(none) == "0," ? 1 : 0));
  }
  REQUIRE(w1.peers.contains("w2"));
  CHECK(w1.peers.at("w2").is_unreachable);
  REQUIRE(w1.connections.size() == 1);
  CHECK(w1.connections[0].segments == 9);
  CHECK(observation.hosts.at("boot").stolen_s == 0.5);
  CHECK_FALSE(observation.processes.at("w2").answers);
  CHECK(observation.processes.at("w2").connects);
}

TEST_CASE("a status of any content is an observation") {
  NodeStatus status{"w1", "", "-", "", Json::object()};
  status.document = Json::parse(
      R"({"node": "w1", "steps": [], "host": 5, "peers": {}, "connections": [[]], "loss": "x"})");
  const auto observation = observe::observation_of({{status}, {}}, 0);
  CHECK(observation.processes.at("w1").steps == 0);
  CHECK(std::isnan(observation.processes.at("w1").loss));
}

TEST_CASE("top shows rates, what does not answer, causes and events, within the terminal") {
  ClusterStatus before{{answer(40), silence(true)}, {}};
  ClusterStatus after{{answer(60), silence(true)}, {}};
  after.nodes[0].document["steps"]["compute_s"] = 1.5;
  after.nodes[0].document["steps"]["wait_s"] = 1.0;
  const std::vector<diagnosis::Observation> observations{observe::observation_of(before, 0),
                                                         observe::observation_of(after, 2)};
  std::string text;
  for (const std::string& line : cli::top_lines(after, observations, {})) text += line + '\n';
  CHECK(test::has(text, "10.0"));  // steps a second
  CHECK(test::has(text, "50 %"));  // waits
  CHECK(test::has(text, "no answer in time"));
  CHECK(test::has(text, "w2: frozen"));
  CHECK(test::has(text, "w1 'w2' joined"));
  CHECK_FALSE(test::has(text, "never"));
  const auto lines = cli::top_lines(after, observations, {.columns = 40, .rows = 4});
  CHECK(lines.size() == 3);
  for (const std::string& line : lines) CHECK(line.size() <= 40);
}

}  // namespace dpwa
