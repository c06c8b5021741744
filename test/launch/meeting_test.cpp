#include "adapters/launch/meeting.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "adapters/launch/rendezvous.h"
#include "adapters/launch/sockets.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/launch/launched_config.h"
#include "dpwa/net/free_ports.h"
#include "test/dpwa/config/scratch_file.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/temporary_directory.h"

// Processes that meet, as threads.
namespace dpwa::launch {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  std::vector<NodeEntry> nodes;
  std::string problem;
};

LaunchPlace place_of(int rank, int size, std::uint16_t port, bool hosted = false) {
  LaunchPlace place;
  place.launcher = "a test";
  place.run = "run";
  place.rank = rank;
  place.size = size;
  place.local_rank = rank;
  place.meeting_host = "127.0.0.1";
  place.meeting_port = port;
  place.hosted = hosted;
  return place;
}

struct MeetingOptions : OwnEndpoint {
  std::string cluster;
  std::chrono::milliseconds patience{};
};

std::vector<NodeEntry> meet_with(const LaunchPlace& place, const MeetingOptions& options) {
  return meet_within(options.patience, place, options.cluster, options);
}

// A port of its own is told to each: looking for free ones is for one thread at a time.
MeetingOptions options_with(std::chrono::milliseconds patience = 20s) {
  MeetingOptions options;
  options.cluster = "c";
  options.port = 20000;
  options.patience = patience;
  return options;
}

std::vector<Outcome> meet_all(const std::vector<LaunchPlace>& places,
                              const std::vector<MeetingOptions>& options) {
  std::vector<Outcome> outcomes(places.size());
  std::vector<std::jthread> processes;
  for (std::size_t i = 0; i < places.size(); ++i) {
    processes.emplace_back([&, i] {
      try {
        MeetingOptions own = options[i % options.size()];
        own.port = static_cast<std::uint16_t>(own.port + places[i].local_rank);
        outcomes[i].nodes = meet_with(places[i], own);
      } catch (const std::exception& error) {
        outcomes[i].problem = error.what();
      }
    });
  }
  processes.clear();
  return outcomes;
}

std::uint16_t free_port() {
  return net::free_ports(1).front();
}

}  // namespace

TEST_CASE("all processes learn of all nodes, in the order of ranks, and the port is free again") {
  const auto port = free_port();
  for (int round = 0; round < 2; ++round) {
    const auto outcomes = meet_all(
        {place_of(2, 3, port), place_of(0, 3, port), place_of(1, 3, port)}, {options_with()});
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.problem == "");
      REQUIRE(outcome.nodes.size() == 3);
      for (int rank = 0; rank < 3; ++rank) {
        const NodeEntry& node = outcome.nodes[static_cast<std::size_t>(rank)];
        CHECK(node.name == "rank" + std::to_string(rank));
        CHECK(node.host == "127.0.0.1");
        CHECK(node.port == 20000 + rank);
      }
    }
  }
}

TEST_CASE("one process alone meets nobody") {
  const auto nodes = meet_with(place_of(0, 1, 0), options_with());
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].host == "127.0.0.1");
}

TEST_CASE("a process that does not come is named by all others") {
  const auto port = free_port();
  const auto outcomes = meet_all({place_of(0, 4, port), place_of(2, 4, port)}, {options_with(5s)});
  const std::string expected =
      "the processes of a test do not meet at 127.0.0.1:" + std::to_string(port) +
      ": not come within 5000 ms: rank 1, 3";
  for (const Outcome& outcome : outcomes) CHECK(outcome.problem == expected);
}

TEST_CASE("two processes of one rank are told so, and all others too") {
  const auto port = free_port();
  const auto outcomes = meet_all({place_of(0, 3, port), place_of(1, 3, port), place_of(1, 3, port)},
                                 {options_with()});
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.problem.ends_with(": two processes joined as rank 1"));
  }
}

TEST_CASE("processes of two clusters do not become nodes of one") {
  const auto port = free_port();
  auto other = options_with();
  other.cluster = "d";
  const auto outcomes =
      meet_all({place_of(0, 2, port), place_of(1, 2, port)}, {options_with(), other});
  for (const Outcome& outcome : outcomes) {
    CHECK(test::has(outcome.problem, " came for cluster '"));
    CHECK(outcome.problem == outcomes.front().problem);
  }
}

TEST_CASE("a store that the launcher hosts serves one meeting after another") {
  const auto agent = Rendezvous::listen("127.0.0.1", 20s);
  for (int round = 0; round < 3; ++round) {
    std::vector<LaunchPlace> places;
    for (int rank = 0; rank < 3; ++rank) places.push_back(place_of(rank, 3, agent.port(), true));
    auto options = options_with();
    options.port = static_cast<std::uint16_t>(21000 + 10 * round);
    for (const Outcome& outcome : meet_all(places, {options})) {
      CHECK(outcome.problem == "");
      REQUIRE(outcome.nodes.size() == 3);
      CHECK(outcome.nodes[2].port == 21002 + 10 * round);
    }
  }
}

TEST_CASE("a meeting that failed does not spoil that of the restart") {
  const auto agent = Rendezvous::listen("127.0.0.1", 20s);
  CHECK(meet_all({place_of(0, 2, agent.port(), true)}, {options_with(2s)})
            .front()
            .problem.ends_with(": rank 1"));
  std::vector<LaunchPlace> places{place_of(0, 2, agent.port(), true),
                                  place_of(1, 2, agent.port(), true)};
  for (LaunchPlace& place : places) place.run = "run/1";
  for (const Outcome& outcome : meet_all(places, {options_with()})) CHECK(outcome.problem == "");
}

TEST_CASE("a port that somebody has, or where nobody is, ends the wait with its reason") {
  const auto other = Rendezvous::listen("127.0.0.1", 20s);
  const auto taken = meet_all({place_of(0, 2, other.port())}, {options_with(1s)});
  CHECK(test::has(taken.front().problem, "cannot listen on 127.0.0.1:"));
  const auto nobody = meet_all({place_of(1, 2, free_port())}, {options_with(200ms)});
  CHECK(test::has(nobody.front().problem, "nothing answers"));
}

TEST_CASE("a process whose meeting point is another program says so") {
  const test::LogFile log;
  const ListeningSocket other("127.0.0.1", 0);
  const auto outcomes = meet_all({place_of(1, 2, other.port())}, {options_with(3s)});
  CHECK(outcomes.front().problem.ends_with("what listens there is no meeting point"));
  CHECK(log.has(": what listens there does not answer as a meeting point, for 2 s so far"));
}

TEST_CASE("a meeting point that gets its name late, or another address, is found") {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const ResolverDouble resolver([asked](const std::string& host) {
    Resolved resolved;
    const int time = asked->fetch_add(1);
    resolved.error = host == "late.test" ? "not yet" : "unknown";
    if (host == "late.test" && time >= 4)
      resolved.addresses = {"127.0.0.1"};
    else if (host == "late.test" && time >= 2)
      resolved.addresses = {"127.0.0.3"};
    return resolved;
  });
  const auto port = free_port();
  auto first = place_of(0, 2, port), second = place_of(1, 2, port);
  second.meeting_host = "late.test";
  for (const Outcome& outcome : meet_all({first, second}, {options_with()})) {
    CHECK(outcome.problem == "");
    CHECK(outcome.nodes.size() == 2);
  }
  CHECK(asked->load() >= 5);
  // The host itself may be the one whose name is late.
  asked->store(0);
  first.meeting_host = "late.test";
  second.meeting_host = "127.0.0.3";
  for (const Outcome& outcome : meet_all({first, second}, {options_with()}))
    CHECK(outcome.problem == "");
}

TEST_CASE("a name that nobody knows ends the wait with its reason, not at once") {
  const ResolverDouble resolver([](const std::string&) { return Resolved{{}, "no answer"}; });
  auto place = place_of(1, 2, free_port());
  place.meeting_host = "never.test";
  const auto outcomes = meet_all({place}, {options_with(1s)});
  CHECK(outcomes.front().problem.ends_with("no address is known for 'never.test' (no answer)"));
}

TEST_CASE("a host that a process names for itself may get its name late") {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const ResolverDouble resolver([asked](const std::string&) {
    Resolved resolved;
    resolved.error = "not yet";
    if (asked->fetch_add(1) >= 2) resolved.addresses = {"127.0.0.1"};
    return resolved;
  });
  const auto port = free_port();
  auto options = options_with();
  options.host = "pod.test";
  for (const Outcome& outcome : meet_all({place_of(0, 2, port), place_of(1, 2, port)}, {options})) {
    CHECK(outcome.problem == "");
    CHECK(outcome.nodes.size() == 2);
    CHECK(last_addresses("pod.test"));
  }
}

TEST_CASE("a process that waits says for whom") {
  const test::LogFile log;
  const auto port = free_port();
  const std::string where = "127.0.0.1:" + std::to_string(port);
  std::vector<std::jthread> processes;
  std::atomic<int> met = 0;
  const auto start = [&](int rank) {
    processes.emplace_back(
        [&, rank] { met += meet_with(place_of(rank, 3, port), options_with(60s)).size() == 3; });
  };
  start(1);
  CHECK(test::eventually([&] { return log.has("waiting for rank 0 at " + where + ": "); }));
  start(0);
  CHECK(test::eventually([&] { return log.has("waiting for rank 2, at " + where + ", for "); }));
  CHECK(log.has(" s so far and 60 s at most"));
  start(2);
  processes.clear();
  CHECK(met == 3);
}

TEST_CASE("the rank counts the nodes of a file that lists them, where no name is given") {
  const test::ScopedVariable rank("RANK", "1"), size("WORLD_SIZE", "2"),
      address("MASTER_ADDR", "127.0.0.1"), port("MASTER_PORT", "9");
  const test::ScratchFile file("nodes: [{name: b, port: 24001}, {name: a, port: 24002}]\n");
  const LaunchedConfig launched(file.path(), "", {}, meet);
  CHECK(launched.config().self == "a");
  CHECK_FALSE(launched.nodes_have_met());
  CHECK(LaunchedConfig(file.path(), "b", {}, meet).config().self == "b");

  const test::ScratchFile store(
      "backend: kvstore\nkvstore: {servers: [{name: s1, port: 24001}]}\n");
  CHECK(
      test::has(test::message_of<ConfigError>([&] { LaunchedConfig(store.path(), "", {}, meet); }),
                "nodes: missing; accepted: the workers of backend kvstore"));
}

}  // namespace dpwa::launch
