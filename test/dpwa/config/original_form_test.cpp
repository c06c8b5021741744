#include <doctest/doctest.h>

#include "dpwa/config/config.h"
#include "dpwa/config/text.h"
#include "interpolation/registry.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;
using namespace std::chrono_literals;

namespace {

const std::string list_form = R"(---
- nodes:
  - {name: w1, host: localhost, port: 45000}
  - {name: w2, host: localhost, port: 45001}
- fetch_probability: 0.5
- timeout_ms: 2500
- interpolation: loss
- divergence_threshold: 0.2
- constant: { value: 0.25 }
- clock: 0
- loss: 0
)";

void check_means_the_original(const Config& config) {
  REQUIRE(config.nodes.size() == 2);
  CHECK(config.nodes[1].host == "localhost");
  CHECK(config.nodes[1].port == 45001);
  CHECK(config.backend == Backend::gossip);
  CHECK(config.gossip.pull_probability == 0.5);
  CHECK(config.gossip.timeout == Duration(2500ms));
  CHECK(config.gossip.step_budget == Duration(2500ms));
  CHECK(config.gossip.blend == BlendMode::lerp);
  CHECK(config.gossip.max_staleness == 0);
  CHECK_FALSE(config.gossip.final_average);
  CHECK(config.gossip.firewall.distance == DistancePolicy::clip);
  CHECK(config.interpolation.method == "loss");
  CHECK(config.interpolation.parameters.empty());
  CHECK(config.interpolation.divergence_threshold == 0.2);
}

}  // namespace

TEST_CASE("the original's list of single-key maps loads and means the same") {
  const ScratchFile file(list_form);
  check_means_the_original(load_cluster(file.path()));
}

TEST_CASE("the original's keys load from a plain map too") {
  const ScratchFile file(R"(
nodes: [{name: w1, host: localhost, port: 45000}, {name: w2, host: localhost, port: 45001}]
pull_probability: 0.5
timeout_ms: 2500ms
interpolation: loss
divergence_threshold: 0.2
constant: {value: 0.25}
clock: 0
loss: 0
)");
  check_means_the_original(load_cluster(file.path()));
}

TEST_CASE("the parameters of the selected method are the ones in force") {
  const ScratchFile file(
      "- nodes: [{name: a, port: 1}]\n- interpolation: constant\n- constant: {value: 0.25}\n- "
      "clock: 0\n");
  const Config config = load_cluster(file.path());
  CHECK(config.interpolation.method == "constant");
  CHECK(config.interpolation.parameters == InterpolationParameters{{"value", 0.25}});
}

TEST_CASE("sections of our own form beside the original's keys override what it means") {
  const ScratchFile file(R"(
- nodes: [{name: a, port: 1}]
- timeout_ms: 100
- gossip: {blend: delta, step_budget_ms: 0, final_average: true}
- cluster: mixed
)");
  const Config config = load_cluster(file.path());
  CHECK(config.cluster == "mixed");
  CHECK(config.gossip.timeout == Duration(100ms));
  CHECK(config.gossip.blend == BlendMode::delta);
  CHECK(config.gossip.step_budget == Duration::zero());
  CHECK(config.gossip.final_average);
}

TEST_CASE("the budget of a step follows the timeout wherever that is given") {
  const ScratchFile file("- nodes: [{name: a, port: 1}]\n- gossip: {timeout_ms: 70}\n");
  CHECK(load_cluster(file.path()).gossip.step_budget == Duration(70ms));
}

TEST_CASE("mistakes in the original form are refused by line and key") {
  const std::string nodes = "- nodes: [{name: a, port: 1}]\n";
  CHECK(error_of(nodes + "- constant: {value: 2}\n") ==
        "2: constant.value: '2' is out of range; accepted: a number from 0 to 1");
  CHECK(error_of(nodes + "- interpolation: clock\n- constant: {valeu: 0.5}\n") ==
        "3: constant.valeu: unknown key, did you mean 'value'? accepted: value");
  CHECK(error_of(nodes + "- clock: {value: 1}\n") ==
        "2: clock.value: unknown key, accepted: no keys");
  CHECK(error_of(nodes + "- clock: 5\n") ==
        "2: clock: '5' is not a map; accepted: a map of its parameters, or 0 for none");
  CHECK(error_of(nodes + "- fetch_probabilty: 1\n")
            .starts_with("2: fetch_probabilty: unknown key, did you mean 'fetch_probability'?"));
  CHECK(error_of(nodes + "- interpolation: los\n") ==
        "2: interpolation: 'los' is unknown, did you mean 'loss'? accepted: " +
            config::joined(interpolation_registry().names()));
  CHECK(error_of(nodes + "- timeout_ms: 1\n- timeout_ms: 2\n") ==
        "3: timeout_ms: given twice; accepted: one value");
  CHECK(error_of(nodes + "- {timeout_ms: 1, fetch_probability: 1}\n") ==
        "2: not a map of one key; accepted in the list form: entries such as '- timeout_ms: 500'");
  CHECK(error_of(nodes + "- timeout_ms\n").starts_with("2: not a map of one key;"));
  CHECK(error_of("- timeout_ms: 5\n") ==
        " nodes: missing; accepted: a list of {name, host, port}; seeds; or none for dpwa-train "
        "under torchrun, srun, mpirun or Kubernetes, or with RANK and WORLD_SIZE, without --name");
}

TEST_CASE("a setting given in both forms at once is refused") {
  const std::string nodes = "nodes: [{name: a, port: 1}]\n";
  CHECK(
      error_of(nodes + "timeout_ms: 5\ngossip: {timeout_ms: 5}\n") ==
      "2: timeout_ms: the same as 'gossip.timeout_ms', which is given too; accepted: one of them");
  CHECK(error_of(nodes + "fetch_probability: 1\npull_probability: 1\n") ==
        "2: fetch_probability: the same as 'pull_probability', which is given too; accepted: one "
        "of them");
  CHECK(error_of(nodes + "fetch_probability: 1\ngossip: {pull_probability: 1}\n") ==
        "2: fetch_probability: the same as 'gossip.pull_probability', which is given too; "
        "accepted: one of "
        "them");
  CHECK(error_of(nodes + "interpolation: {method: constant}\nconstant: {value: 0.5}\n") ==
        "3: constant: given beside interpolation as a map; accepted: inside that map");
  CHECK(error_of(nodes + "interpolation: {method: constant}\ndivergence_threshold: 1\n") ==
        "3: divergence_threshold: given beside interpolation as a map; accepted: inside that map");
}
