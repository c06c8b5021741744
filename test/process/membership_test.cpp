// Who is in the cluster, told by real processes over real sockets.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "dpwa/net/free_ports.h"
#include "dpwa/net/status_query.h"
#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ClusterRun;
using test::holds_in_time;

constexpr const char* settings =
    "gossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s,\n"
    "  membership: {suspect_ms: 300}}";

std::string port_in_environment(std::uint16_t port) {
  return "DPWA_PORT=" + std::to_string(port);
}

std::string at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// What the node that listens at `port` holds `name` to be; "" = it does not know it, or is gone.
std::string held_by(std::uint16_t port, const std::string& name) {
  const std::vector<PeerAddress> node{{"", {"127.0.0.1"}, port}};
  const auto answers = query_status("dpwa", node, std::chrono::seconds(5));
  const auto status = nlohmann::json::parse(answers[0].json, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return "";
  for (const auto& member : status["members"]) {
    if (member["name"] == name) return member["status"];
  }
  return "";
}

bool held_by_all(const std::vector<std::uint16_t>& ports, const std::string& name,
                 const std::string& status) {
  return std::ranges::all_of(ports,
                             [&](std::uint16_t port) { return held_by(port, name) == status; });
}

}  // namespace

TEST_CASE("two nodes join three by one of them, and all learn of each other's coming and going") {
  ClusterRun run(3, settings);
  const auto more = net::free_ports(2);
  const std::string seed = at(run.ports()[0]);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.steps("w3").size() > 40; }));

  run.start("w4", {"--step-ms", "4", "--join", seed}, {port_in_environment(more[0])});
  run.start("w5", {"--step-ms", "4", "--join", seed}, {port_in_environment(more[1])});
  const bool met = holds_in_time([&] {
    return run.count("w2", 0, "mixed", "w4") > 0 && run.count("w3", 0, "mixed", "w5") > 0 &&
           run.count("w4", 0, "mixed", "w5") > 0 && run.count("w5", 0, "mixed", "w4") > 0 &&
           run.count("w4", 0, "mixed", "w3") > 0;
  });
  INFO(run.logs());
  INFO(run.log("w4"));
  INFO(run.log("w5"));
  REQUIRE(met);
  CHECK(run.lines("w4")[0]["clock"] > 10);  // the current weights, not its own

  run.process("w5").signal(SIGTERM);
  CHECK(run.wait("w5") == 143);
  auto everybody = run.ports();
  everybody.push_back(more[0]);
  CHECK(holds_in_time([&] { return held_by_all(everybody, "w5", "left"); }));

  run.process("w4").signal(SIGKILL);
  REQUIRE(run.wait("w4") == -SIGKILL);
  CHECK(holds_in_time([&] { return held_by_all(run.ports(), "w4", "dead"); }));
  const auto lines = run.lines("w4").size();
  run.start("w4", {"--step-ms", "4", "--join", seed}, {port_in_environment(more[0])});
  CHECK(holds_in_time([&] { return held_by_all(run.ports(), "w4", "alive"); }));
  CHECK(holds_in_time([&] { return run.lines("w4").size() > lines + 20; }));

  CHECK(run.finishes_well());
  CHECK(run.wait("w4") == 0);
  INFO(run.log("w4"));
  for (const std::string name : {"w1", "w2", "w3", "w4"}) {
    CHECK(run.last_line(name)["participants"] == 4);
    CHECK(run.last_line(name)["checksum"] == run.last_line("w1")["checksum"]);
  }
}

TEST_CASE("nodes that no list names meet by seeds, and a killed one comes back at another port") {
  ClusterRun run(3, settings);
  const auto moved = net::free_ports(1)[0];
  // The third is no seed. Nobody is held to be dead in this test, however busy the machine is.
  test::write_text(run.file(),
                   "seeds: ['" + at(run.ports()[0]) + "', '" + at(run.ports()[1]) +
                       "']\ngossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}\n");
  for (std::size_t i = 0; i < 3; ++i)
    run.start(run.names()[i], {"--step-ms", "4"}, {port_in_environment(run.ports()[i])});
  const bool met = holds_in_time([&] {
    return run.count("w1", 0, "mixed", "w3") > 0 && run.count("w2", 0, "mixed", "w1") > 0 &&
           run.count("w3", 0, "mixed", "w2") > 0;
  });
  INFO(run.logs());
  REQUIRE(met);

  run.process("w1").signal(SIGKILL);
  REQUIRE(run.wait("w1") == -SIGKILL);
  const auto lines = run.lines("w1").size();
  const auto steps = run.steps("w2").size();
  run.start("w1", {"--step-ms", "4"}, {port_in_environment(moved)});
  CHECK(holds_in_time([&] {
    return run.lines("w1").size() > lines + 20 && run.count("w2", steps, "mixed", "w1") > 0;
  }));
  CHECK(run.lines("w1")[lines]["clock"] > 10);  // the current weights, not its own

  CHECK(run.finishes_well());
  for (const std::string name : {"w1", "w2", "w3"}) {
    CHECK(run.last_line(name)["participants"] == 3);
    CHECK(run.last_line(name)["checksum"] == run.last_line("w1")["checksum"]);
  }
}

TEST_CASE(
    "a second process under a name is refused while the first runs, and a restart is let in") {
  ClusterRun run(3, settings);
  const auto other = net::free_ports(1)[0];
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] {
    return run.count("w1", 0, "mixed", "w2") > 0 && run.count("w3", 0, "mixed", "w2") > 0;
  }));
  const std::vector<std::string> command{DPWA_VECTOR_TRAINER, run.file(), "w2",
                                         run.directory() / "second.jsonl"};
  test::ChildProcess second(command, run.directory() / "second.log", {port_in_environment(other)});
  const auto ended = second.wait(test::run_patience);
  INFO(run.logs());
  INFO(run.log("second"));
  CHECK(ended == 1);
  CHECK(test::has(run.log("second"),
                  "the name 'w2' is taken: another process answers to it at "
                  "127.0.0.1 port " +
                      std::to_string(run.ports()[1])));
  CHECK(test::has(run.log("w1"), "the name 'w2' is taken"));
  const auto mixed = run.count("w2", 0, "mixed");
  CHECK(holds_in_time([&] { return run.count("w2", 0, "mixed") > mixed + 5; }));

  run.process("w2").signal(SIGKILL);
  REQUIRE(run.wait("w2") == -SIGKILL);
  const auto lines = run.lines("w2").size();
  run.start("w2", {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.lines("w2").size() > lines; }));
  CHECK(run.finishes_well());
}

}  // namespace dpwa
