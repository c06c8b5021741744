// Who is in the cluster, told by real processes over real sockets.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "dpwa/net/free_ports.h"
#include "dpwa/net/status_query.h"
#include "test/process/cluster_run.h"
#include "test/process/tcp_bridge.h"

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
  CHECK(run.log("second").find("the name 'w2' is taken: another process answers to it at "
                               "127.0.0.1 port " +
                               std::to_string(run.ports()[1])) != std::string::npos);
  CHECK(run.log("w1").find("the name 'w2' is taken") != std::string::npos);
  const auto mixed = run.count("w2", 0, "mixed");
  CHECK(holds_in_time([&] { return run.count("w2", 0, "mixed") > mixed + 5; }));

  run.process("w2").signal(SIGKILL);
  REQUIRE(run.wait("w2") == -SIGKILL);
  const auto lines = run.lines("w2").size();
  run.start("w2", {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.lines("w2").size() > lines; }));
  CHECK(run.finishes_well());
}

TEST_CASE("one that cannot join ends and says why") {
  ClusterRun run(1, "gossip: {start_wait_ms: 300, finish_wait_ms: 2s, membership: {join: closed}}");
  const auto ports = net::free_ports(2);
  run.start("w1", {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return !run.lines("w1").empty(); }));
  run.start("w8", {"--join", at(run.ports()[0])}, {port_in_environment(ports[0])});
  CHECK(run.wait("w8") == 1);
  CHECK(run.log("w8").find("'w8' is not in the cluster file of 'w1'") != std::string::npos);
  run.start("w9", {"--join", at(ports[1])}, {port_in_environment(ports[0])});
  CHECK(run.wait("w9") == 1);
  CHECK(run.log("w9").find("cannot join by 127.0.0.1:" + std::to_string(ports[1])) !=
        std::string::npos);
  run.start("w7", {"--join", at(run.ports()[0])});
  CHECK(run.wait("w7") == 2);
  CHECK(run.log("w7").find("DPWA_PORT") != std::string::npos);
  run.start("w6", {"--join", "nowhere"}, {port_in_environment(ports[0])});
  CHECK(run.wait("w6") == 2);
  CHECK(run.log("w6").find("accepted: HOST:PORT") != std::string::npos);
  run.finish();
  CHECK(run.wait("w1") == 0);
}

TEST_CASE("two halves of a split network hold each other dead, and find each other again") {
  const std::string tcp_only = std::string(settings) + "\ntransport: {same_host: off}";
  ClusterRun run(4, tcp_only);
  const auto across = net::free_ports(4);
  // The file of each half has the nodes of the other behind bridges.
  const auto file_of = [&](std::size_t half) {
    const auto path = run.directory() / ("half" + std::to_string(half) + ".yaml");
    std::ofstream file(path);
    file << "nodes:\n";
    for (std::size_t i = 0; i < 4; ++i) {
      const auto port = i / 2 == half ? run.ports()[i] : across[i];
      file << "  - {name: w" << i + 1 << ", port: " << port << "}\n";
    }
    file << tcp_only << "\n";
    return path;
  };
  std::vector<std::unique_ptr<test::TcpBridge>> bridges;
  for (std::size_t i = 0; i < 4; ++i)
    bridges.push_back(std::make_unique<test::TcpBridge>(across[i], run.ports()[i]));
  std::vector<test::ChildProcess> nodes;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string name = "w" + std::to_string(i + 1);
    nodes.emplace_back(std::vector<std::string>{DPWA_VECTOR_TRAINER, file_of(i / 2), name,
                                                run.directory() / (name + ".jsonl"), "--until",
                                                run.directory() / "finish", "--step-ms", "4"},
                       run.directory() / (name + ".log"));
  }
  const std::vector<std::uint16_t> here{run.ports()[0], run.ports()[1]};
  const std::vector<std::uint16_t> there{run.ports()[2], run.ports()[3]};
  const auto halves_are = [&](const std::string& status) {
    return held_by_all(here, "w3", status) && held_by_all(here, "w4", status) &&
           held_by_all(there, "w1", status) && held_by_all(there, "w2", status);
  };
  const auto meets = [&](const std::string& name, std::size_t from, const std::string& peer) {
    return run.count(name, from, "mixed", peer) > 0;
  };
  REQUIRE(holds_in_time([&] { return meets("w1", 0, "w3") && meets("w4", 0, "w2"); }));
  for (auto& bridge : bridges) bridge->cut();
  const bool apart = holds_in_time([&] { return halves_are("dead"); });
  INFO(run.logs());
  REQUIRE(apart);
  CHECK(held_by(here[0], "w2") == "alive");

  std::map<std::string, std::size_t> from;
  for (const auto& name : run.names()) from[name] = run.steps(name).size();
  for (auto& bridge : bridges) bridge->mend();
  const bool healed = holds_in_time([&] {
    return halves_are("alive") && meets("w1", from["w1"], "w3") && meets("w2", from["w2"], "w4") &&
           meets("w3", from["w3"], "w2") && meets("w4", from["w4"], "w1");
  });
  CHECK(healed);
  run.finish();
  for (auto& node : nodes) CHECK(node.wait(test::run_patience) == 0);
}

}  // namespace dpwa
