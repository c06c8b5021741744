#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "dpwa/cli/text_table.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/net/free_ports.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

// A cluster file on disk for `ports`, removed at the end.
class ClusterFile {
 public:
  explicit ClusterFile(const std::vector<std::uint16_t>& ports)
      : path_(std::filesystem::temp_directory_path() /
              std::string("dpwa-status-").append(std::to_string(ports.at(0))).append(".yaml")) {
    std::ofstream file(path_);
    file << "cluster: test\nnodes:\n";
    for (std::size_t i = 0; i < ports.size(); ++i) {
      file << "  - {name: w" << i + 1 << ", host: 127.0.0.1, port: " << ports[i] << "}\n";
    }
  }
  ~ClusterFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE(
    "status asks with the key of the file, and says why a node with another does not answer") {
  const test::SecretFolder folder;
  REQUIRE(test::run_cli({"keygen", "-o", folder.path("ours").string()}).exit_code == 0);
  REQUIRE(test::run_cli({"keygen", "-o", folder.path("theirs").string()}).exit_code == 0);
  const auto ports = net::free_ports(1);
  Config config = test::loopback_config(ports, 0);
  config.security.mode = "psk";
  config.security.key_file = folder.path("ours").string();
  config.gossip.start_wait = std::chrono::milliseconds(20);
  test::VectorNode node(config, 8);
  node.gossip().start();
  const auto status = [&](const std::string& key_file) {
    const auto file = folder.write(
        "cluster.yaml", "cluster: test\nnodes: [{name: w1, port: " + std::to_string(ports[0]) +
                            "}]\nsecurity: {mode: psk, key_file: " + key_file + "}\n");
    return test::run_cli({"status", "--config", file.string()});
  };
  CHECK(test::has(status("ours").out, "training"));
  CHECK(test::has(status("theirs").out,
                  "no answer: has another cluster key than this process (security.key_file)"));
  const auto missing = status("none");
  CHECK(missing.exit_code == 2);
  CHECK(missing.err == folder.path("cluster.yaml").string() +
                           ":3: security.key_file: " + folder.path("none").string() +
                           ": cannot be read: No such file or directory; accepted: a regular file "
                           "that this user may read\n");
}

TEST_CASE("status shows nodes that joined beside those of the file, and where they listen") {
  const auto ports = net::free_ports(3);
  Config first = test::loopback_config({ports[0], ports[1]}, 0);
  first.gossip.start_wait = std::chrono::milliseconds(20);
  first.gossip.timeout = std::chrono::milliseconds(200);
  test::VectorNode node(first, 8);
  node.gossip().start();
  Config second = test::loopback_config({ports[2]}, 0);
  second.nodes[0].name = "w9";
  second.self = "w9";
  second.join = {first.nodes[0]};
  test::VectorNode joiner(second, 8);
  joiner.gossip().start();
  const ClusterFile file({ports[0], ports[1]});

  const auto table = test::run_cli({"status", "--config", file.path()});
  CHECK(table.exit_code == 0);
  const auto row = table.out.find("\nw9 ");
  REQUIRE(row != std::string::npos);
  CHECK(table.out.find("joined at 127.0.0.1:" + std::to_string(ports[2]), row) !=
        std::string::npos);
  const auto json = test::run_cli({"status", "--config", file.path(), "--json"});
  const auto document = nlohmann::json::parse(json.out);
  REQUIRE(document["nodes"].size() == 3);
  CHECK(document["nodes"][2]["name"] == "w9");
  CHECK(document["nodes"][2]["status"]["members"][0]["name"] == "w9");
  CHECK(document["nodes"][2]["status"]["members"][0]["listed"] == false);
  CHECK(document["nodes"][0]["status"]["members"][0]["name"] == "w1");
  CHECK(document["nodes"][0]["status"]["members"][0]["listed"] == true);
}

TEST_CASE("status shows a running node and a row for one that does not answer") {
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 0);
  config.gossip.start_wait = std::chrono::milliseconds(20);
  config.gossip.timeout = std::chrono::milliseconds(200);
  config.transport.encoding = Codec::int8;
  test::VectorNode node(config, 8);
  node.gossip().start();
  node.gossip().update_send([] { return 0.25; });
  node.gossip().update_wait();
  const ClusterFile file(ports);

  const auto table = test::run_cli({"status", "--config", file.path()});
  CHECK(table.exit_code == 0);
  CHECK(test::has(table.out, "training"));
  CHECK(test::has(table.out, "0.2500"));
  CHECK(test::has(table.out, "w2    no answer: Connection refused; address 127.0.0.1:" +
                                 std::to_string(ports[1])));

  const auto json = test::run_cli({"status", "--config", file.path(), "--json"});
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["cluster"] == "test");
  CHECK(document["nodes"][0]["answered"] == true);
  CHECK(document["nodes"][0]["status"]["clock"] == 1.0);
  CHECK(document["nodes"][0]["status"]["encoding"] == "int8");
  CHECK(document["nodes"][0]["status"]["peers"][0]["name"] == "w2");
  CHECK(document["nodes"][1]["answered"] == false);
}

TEST_CASE("status shows which peers are read from memory, and which over TCP") {
  bool same_host = true;
  SUBCASE("from memory") {}
  SUBCASE("switched off") {
    same_host = false;
  }
  const auto ports = net::free_ports(2);
  std::vector<std::unique_ptr<test::VectorNode>> nodes;
  for (std::size_t i = 0; i < 2; ++i) {
    Config config = test::loopback_config(ports, i);
    config.transport.same_host = same_host;
    config.gossip.step_budget = test::patience;
    nodes.push_back(std::make_unique<test::VectorNode>(config, 8));
  }
  std::thread first([&] { nodes[0]->gossip().start(); });
  nodes[1]->gossip().start();
  first.join();
  nodes[0]->gossip().update_send([] { return 0.5; });
  nodes[1]->gossip().update_send([] { return 0.5; });
  REQUIRE(nodes[0]->gossip().update_wait().outcome == Outcome::mixed);

  const ClusterFile file(ports);
  const auto json = test::run_cli({"status", "--config", file.path(), "--json"});
  const auto status = nlohmann::json::parse(json.out)["nodes"][0]["status"];
  CHECK(status["peers"][0]["transport"] == (same_host ? "same_host" : "tcp"));
  CHECK((status["same_host_pulls"] >= 1) == same_host);
  CHECK(status["pulls_ok"] >= 1);
  const auto table = test::run_cli({"status", "--config", file.path()});
  CHECK(test::has(table.out, same_host ? " 1/1" : " 0/1"));
}

TEST_CASE("a peer that sends NaN is refused, seen in the status, and blended once it behaves") {
  const auto ports = net::free_ports(2);
  std::vector<std::unique_ptr<test::VectorNode>> nodes;
  for (std::size_t i = 0; i < 2; ++i) {
    Config config = test::loopback_config(ports, i);
    config.gossip.timeout = config.gossip.step_budget = std::chrono::seconds(10);
    nodes.push_back(std::make_unique<test::VectorNode>(config, 8));
  }
  test::at_once(2, [&](std::size_t i) { nodes[i]->gossip().start(); });
  const ClusterFile file(ports);
  const auto status = [&] {
    const auto json = test::run_cli({"status", "--config", file.path(), "--json"});
    return nlohmann::json::parse(json.out)["nodes"][0]["status"];
  };
  const auto step = [&] {
    nodes[1]->gossip().publish([] { return 0.5; });
    nodes[0]->gossip().update_send([] { return 0.5; });
    return nodes[0]->gossip().update_wait();
  };

  nodes[1]->values()[5] = std::numeric_limits<float>::quiet_NaN();
  unsigned refused = 0;
  REQUIRE(test::eventually([&] {
    refused += step().refused;
    return refused == 3;
  }));
  const auto held = status();
  CHECK(held["firewall"]["not_finite"] == 3);
  CHECK(held["peers"][0]["last_failure"] == "unusable");
  const auto table = test::run_cli({"status", "--config", file.path()});
  CHECK(test::has(table.out, "3 refused\n"));
  const auto check = test::run_cli({"status", "--check", file.path()});
  CHECK(check.exit_code == 1);
  CHECK(check.err == "w2: its parameters are refused by w1\n");
  for (const float value : nodes[0]->values()) CHECK(value == 0.0F);

  std::ranges::fill(nodes[1]->values(), 4.0F);
  CHECK(test::eventually([&] { return step().outcome == Outcome::mixed; }));
  CHECK(nodes[0]->values()[5] == 2.0F);
  CHECK(status()["peers"][0]["last_failure"] == nullptr);
}

TEST_CASE("a peer's status cannot control the terminal or fake a row") {
  const test::FakePeer peer([](test::RawSocket& socket) {
    if (!test::welcome(socket, "w1")) return;
    const auto request = socket.read_frame();
    if (!request) return;
    wire::Status status;
    status.json = R"({"state": "\u001b]0;x\u0007\nw9", "published": "\u009b2J", )"
                  R"("members": [{"name": "w1", "status": "\u001b[2J\nw8"}]})";
    socket.send(wire::encode(status, request->header.request_id));
    socket.ended_by_other_side();
  });
  const ClusterFile file(std::vector<std::uint16_t>{peer.port()});
  const auto table = test::run_cli({"status", "--config", file.path()}).out;
  CHECK(test::has(table, "?]0;x??w9"));
  CHECK(test::has(table, "?[2J?w8"));
  CHECK(std::ranges::count(table, '\n') == 3);  // the notes stand below the row
  CHECK(test::has(table, "\n    member ?[2J?w8\n"));
  const auto json = test::run_cli({"status", "--config", file.path(), "--json"}).out;
  CHECK(nlohmann::json::parse(json)["nodes"][0]["status"]["published"] == "\u009b2J");
  for (const auto& out : {table, json}) {
    CHECK(out.find('\x1b') == std::string::npos);
    CHECK_FALSE(test::has(out, "\u009b"));
  }
}

TEST_CASE("a status that is nested without end is no status") {
  constexpr std::size_t depth = 200'000;
  const test::FakePeer peer([](test::RawSocket& socket) {
    if (!test::welcome(socket, "w1")) return;
    const auto request = socket.read_frame();
    if (!request) return;
    wire::Status status;
    status.json = R"({"state": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
    socket.send(wire::encode(status, request->header.request_id));
    socket.ended_by_other_side();
  });
  const ClusterFile file(std::vector<std::uint16_t>{peer.port()});
  CHECK(test::run_cli({"status", "--config", file.path()}).exit_code == 0);
  const auto json = test::run_cli({"status", "--config", file.path(), "--json"}).out;
  CHECK(nlohmann::json::parse(json)["nodes"][0]["status"] == nlohmann::json::object());
}

TEST_CASE("status counts pulls as the trainer does, and the attempts at each peer apart") {
  const auto ports = net::free_ports(3);
  std::vector<std::unique_ptr<test::VectorNode>> nodes;  // w1 and w2; w3 is down
  for (std::size_t i = 0; i < 2; ++i) {
    Config config = test::loopback_config(ports, i);
    config.gossip.step_budget = test::patience;
    config.gossip.timeout = test::patience;
    config.gossip.start_wait = std::chrono::milliseconds(500);  // for w2, on a busy machine too
    config.gossip.ledger = false;  // w2 never pulls, so that it would be passed over
    nodes.push_back(std::make_unique<test::VectorNode>(config, 8));
  }
  test::at_once(2, [&](std::size_t i) { nodes[i]->gossip().start(); });
  const ClusterFile file(ports);
  StepReport report;
  nlohmann::json status;
  // Each pull that asks w3 first goes on to w2: the pull is none that failed, the attempt is.
  REQUIRE(test::eventually([&] {
    nodes[1]->gossip().publish([] { return 0.5; });
    nodes[0]->gossip().update_send([] { return 0.5; });
    report = nodes[0]->gossip().update_wait();
    const auto json = test::run_cli({"status", file.path(), "--json"});
    status = nlohmann::json::parse(json.out)["nodes"][0]["status"];
    return report.pulls_ok > 0 && status["attempts_failed"] > report.pulls_failed;
  }));
  CHECK(status["pulls_ok"] == report.pulls_ok);
  CHECK(status["pulls_failed"] == report.pulls_failed);
  CHECK(status["attempts_ok"] >= report.pulls_ok);
  std::uint64_t failed = 0;
  for (const auto& peer : status["peers"]) failed += peer["attempts_failed"].get<std::uint64_t>();
  CHECK(status["attempts_failed"] == failed);
}

TEST_CASE("the status values of a back end are shown, and a wait for others is noted") {
  const auto ports = net::free_ports(1);
  test::VectorNode node(test::loopback_config(ports, 0), 8);
  node.gossip().start();
  StatusNotes& notes = node.gossip().node().local().notes;
  const ClusterFile file(ports);
  CHECK_FALSE(test::has(test::run_cli({"status", file.path()}).out, "waits for others"));
  notes.set("clock", "41.5");
  notes.set("collective", R"({"rank": 0, "waits": true, "exchange": "gradients"})");
  const auto table = test::run_cli({"status", file.path()}).out;
  CHECK(test::has(table, "waits for others"));
  notes.set("collective", R"({"rank": 0, "seeks": true, "minority": ""})");
  CHECK(test::has(test::run_cli({"status", file.path()}).out, "seeks a group"));
  notes.set("collective", R"({"rank": 0, "seeks": true, "minority": "1 of 3 nodes"})");
  CHECK(test::has(test::run_cli({"status", file.path()}).out, "lacks a majority"));
  CHECK(test::has(table, "41.5"));
  const auto json = nlohmann::json::parse(test::run_cli({"status", file.path(), "--json"}).out);
  CHECK(json["nodes"][0]["status"]["collective"]["rank"] == 0);
  CHECK(json["nodes"][0]["status"]["clock"] == 41.5);
}

TEST_CASE("status takes the cluster file with or without --config, once") {
  const auto ports = net::free_ports(1);
  const ClusterFile file(ports);
  const auto positional = test::run_cli({"status", file.path()});
  CHECK(positional.exit_code == 0);
  CHECK(positional.out == test::run_cli({"status", "--config", file.path()}).out);
  CHECK(test::run_cli({"status", file.path(), "--config", file.path()}).exit_code == 2);
  CHECK(test::run_cli({"status", file.path(), "--watch", "--json"}).exit_code == 2);
  CHECK(test::run_cli({"status", file.path(), "--watch=0"}).exit_code == 2);
  CHECK(test::run_cli({"status", file.path(), "--watch=0.5"}).exit_code == 2);
}

TEST_CASE("status --check is 1 with a line for each node of the file that is missing") {
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config({ports[0]}, 0);
  config.gossip.start_wait = std::chrono::milliseconds(20);
  test::VectorNode node(config, 8);
  node.gossip().start();
  const ClusterFile alone({ports[0]});
  const auto well = test::run_cli({"status", "--check", alone.path()});
  CHECK(well.exit_code == 0);
  CHECK(well.err.empty());
  CHECK(test::has(well.out, "training"));
  const ClusterFile both({ports[0], ports[1]});
  const auto missing = test::run_cli({"status", "--check", both.path()});
  CHECK(missing.exit_code == 1);
  CHECK(missing.err == "w2: no answer: Connection refused\n");
  CHECK(test::run_cli({"status", "--check", "/nonexistent.yaml"}).exit_code == 2);
}

TEST_CASE("a node that answers at the address of another is missing there") {
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config({ports[0]}, 0);
  config.nodes[0].name = "q2";
  config.self = "q2";
  test::VectorNode node(config, 8);
  node.gossip().start();
  node.gossip().update_send([] { return 0.25; });
  node.gossip().update_wait();
  const ClusterFile file({ports[0]});  // calls it w1
  const auto check = test::run_cli({"status", "--check", file.path()});
  CHECK(check.exit_code == 1);
  CHECK(check.err == "w1: answers as 'q2'\n");
  std::istringstream lines(check.out);
  std::string header, asked, heard_of;
  std::getline(lines, header) && std::getline(lines, asked) && std::getline(lines, heard_of);
  CHECK(asked.starts_with("w1 "));
  CHECK(test::has(asked, "answers as 'q2'"));
  CHECK_FALSE(test::has(asked, "0.2500"));
  CHECK(heard_of.starts_with("q2 "));  // it tells of itself: a node that the file does not have
  CHECK(test::has(heard_of, "0.2500"));
  const auto json = test::run_cli({"status", file.path(), "--json"});
  const auto shown = nlohmann::json::parse(json.out)["nodes"][0];
  CHECK(shown["name"] == "w1");
  CHECK(shown["answered"] == false);
  CHECK(shown["error"] == "answers as 'q2'");
  CHECK(shown["answers_as"] == "q2");
  CHECK_FALSE(shown.contains("status"));  // run.sh --detach and others would take it for that of w1
}

}  // namespace dpwa
