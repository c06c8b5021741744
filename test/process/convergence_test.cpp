#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ClusterRun;

constexpr const char* patient = "gossip: {timeout_ms: 5s, start_wait_ms: 60s, finish_wait_ms: 60s}";

// samples/original.yaml with other ports.
void write_original_sample(const std::filesystem::path& file,
                           const std::vector<std::uint16_t>& ports) {
  std::ostringstream sample;
  sample << std::ifstream(DPWA_SOURCE_DIR "/samples/original.yaml").rdbuf();
  std::string text = sample.str();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto at = text.find(std::to_string(45000 + i));
    REQUIRE(at != std::string::npos);
    text.replace(at, 5, std::to_string(ports[i]));
  }
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("four processes converge to the optimum, and end with one and the same average") {
  ClusterRun run(4, patient);
  run.start_all({"--steps", "250"});
  const bool well = run.all_finished_well();
  INFO(run.logs());
  REQUIRE(well);
  const auto first = run.last_line("w1");
  for (const auto& name : run.names()) {
    const auto lines = run.lines(name);
    CHECK(lines.front()["x"] <= 3.0);  // the weights of w1, which may have trained on since
    CHECK(run.steps(name).size() == 250);
    CHECK(run.count(name, 0, "mixed") > 20);
    CHECK(lines.back()["participants"] == 4);
    CHECK(lines.back()["checksum"] == first["checksum"]);
    CHECK(lines.back()["error"] < 0.05);
    CHECK(lines.back()["distance"] < 0.1 * std::sqrt(1000.0));
  }
}

TEST_CASE("the original's sample file runs, with nothing but its ports changed") {
  ClusterRun run(4);
  write_original_sample(run.file(), run.ports());
  run.start_all({"--steps", "400"});
  const bool well = run.all_finished_well();
  INFO(run.logs());
  REQUIRE(well);
  for (const auto& name : run.names()) {
    CHECK(run.steps(name).size() == 400);
    CHECK(run.count(name, 0, "mixed") > 20);
    CHECK(run.last_line(name)["participants"] == 1);  // the original takes no final average
    CHECK(run.last_line(name)["error"] < 0.1);
  }
}

}  // namespace dpwa
