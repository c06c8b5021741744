#include <doctest/doctest.h>

#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ClusterRun;

// samples/original.yaml with other ports.
void write_original_sample(const std::filesystem::path& file,
                           const std::vector<std::uint16_t>& ports) {
  std::string text = test::read_text(DPWA_SOURCE_DIR "/samples/original.yaml");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto at = text.find(std::to_string(45000 + i));
    REQUIRE(at != std::string::npos);
    text.replace(at, 5, std::to_string(ports[i]));
  }
  test::write_text(file, text);
}

}  // namespace

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
