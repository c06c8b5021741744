#include <doctest/doctest.h>
#include <signal.h>

#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ClusterRun;
using test::holds_in_time;

constexpr const char* settings =
    "gossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}";

// The first line of its log with these words; empty: there is none.
std::string log_line(const ClusterRun& run, const std::string& name, const std::string& words) {
  const std::string log = run.log(name);
  const auto at = log.find(words);
  if (at == std::string::npos) return "";
  const auto before = log.rfind('\n', at);
  return log.substr(before == std::string::npos ? 0 : before + 1);
}

// Each pulls from each other, in what it does from now on.
bool all_mix(const ClusterRun& run) {
  std::map<std::string, std::size_t> from;
  for (const auto& name : run.names()) from[name] = run.steps(name).size();
  return holds_in_time([&] {
    for (const auto& name : run.names()) {
      for (const auto& peer : run.names()) {
        if (peer != name && run.count(name, from[name], "mixed", peer) < 3) return false;
      }
    }
    return true;
  });
}

}  // namespace

TEST_CASE("the wall clocks of nodes jump by days, ahead and back, and nobody is lost") {
  ClusterRun run(3, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(all_mix(run));
  run.process("w1").signal(SIGUSR1);
  run.process("w2").signal(SIGUSR2);
  CHECK(all_mix(run));
  // That they did jump: each SIGHUP is a line in the log, with the time of the node.
  const auto day = [&](const std::string& name) {
    run.process(name).signal(SIGHUP);
    std::string line;
    REQUIRE(holds_in_time([&] {
      line = log_line(run, name, "the cluster file has not changed");
      return !line.empty();
    }));
    return line.substr(0, 10);
  };
  const std::string yesterday = day("w2");
  const std::string today = day("w3");
  const std::string tomorrow = day("w1");
  CHECK(yesterday < today);
  CHECK(today < tomorrow);
  run.process("w1").signal(SIGUSR2);
  run.process("w2").signal(SIGUSR1);
  CHECK(all_mix(run));
  REQUIRE(run.finishes_well());
  for (const auto& name : run.names()) {
    CHECK_FALSE(test::has(run.log(name), "is gone"));
    CHECK(run.last_line(name)["participants"] == 3);
  }
}

TEST_CASE("a node that is restarted under an earlier or a much later time is let in at once") {
  ClusterRun run(3, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(all_mix(run));
  for (const char* days : {"-2", "400", "0"}) {
    CAPTURE(days);
    run.process("w3").signal(SIGKILL);
    REQUIRE(run.wait("w3") == -SIGKILL);
    run.start("w3", {"--step-ms", "4"}, {std::string("DPWA_TEST_CLOCK_DAYS=") + days});
    CHECK(all_mix(run));
  }
  REQUIRE(run.finishes_well());
  for (const auto& name : run.names()) CHECK(run.last_line(name)["participants"] == 3);
}

}  // namespace dpwa
