#include "dpwa/launch/nodes.h"

#include <doctest/doctest.h>

namespace dpwa::launch {
namespace {

Arrival at(const std::string& host, const std::string& meeting_point = "127.0.0.1",
           std::vector<int> processors = {0, 1}) {
  Arrival arrival;
  arrival.host = host;
  arrival.port = 20000;
  arrival.meeting_point = meeting_point;
  arrival.processors = std::move(processors);
  return arrival;
}

std::vector<std::string> hosts(const std::vector<NodeEntry>& nodes) {
  std::vector<std::string> names;
  for (const NodeEntry& node : nodes) names.push_back(node.host);
  return names;
}

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("processes of one host are nodes on its loopback address, named by their ranks") {
  const auto nodes = settle({at("127.0.0.1"), at("127.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"127.0.0.1", "127.0.0.1"});
  CHECK(nodes[0].name == "rank0");
  CHECK(nodes[1].name == "rank1");
  CHECK(nodes[1].port == 20000);
}

TEST_CASE("a process beside the meeting point is where the others reached that point") {
  const auto nodes =
      settle({at("127.0.1.1", "0.0.0.0"), at("10.0.0.2", "10.0.0.1"), at("::1", "::1")});
  CHECK(hosts(nodes) == Hosts{"10.0.0.1", "10.0.0.2", "10.0.0.1"});
}

TEST_CASE("addresses that others reach stay as they are") {
  const auto nodes = settle({at("10.0.0.1", "10.0.0.1"), at("10.0.0.2", "10.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("a host that the user gave stays, and the listening address with it") {
  Arrival given = at("127.0.0.1", "127.0.0.1");
  given.host_given = true;
  given.bind = "0.0.0.0";
  const auto nodes = settle({given, at("10.0.0.2", "10.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"127.0.0.1", "10.0.0.2"});
  CHECK(nodes[0].bind == "0.0.0.0");
}

TEST_CASE("an address that nobody else can know is an error that says what to set") {
  Arrival given = at("node9", "127.0.0.1");
  given.host_given = true;
  CHECK_THROWS_WITH(settle({at("127.0.0.1"), given}),
                    "no address is known at which the other processes reach rank0; accepted: "
                    "DPWA_HOST in its environment, or MASTER_ADDR as the address of its host");
}

TEST_CASE("processes that were bound to processors of their own have these as cores") {
  const std::string host = "127.0.0.1";
  const auto bound = settle({at(host, host, {0, 1}), at(host, host, {2, 3})});
  CHECK(bound[0].cores == std::vector<int>{0, 1});
  CHECK(bound[1].cores == std::vector<int>{2, 3});
  const auto shared = settle({at(host, host, {0, 1}), at(host, host, {1, 2})});
  CHECK(shared[0].cores.empty());
  const auto apart = settle({at("10.0.0.1", "10.0.0.1", {0}), at("10.0.0.2", "10.0.0.1", {1})});
  CHECK(apart[0].cores.empty());
}

TEST_CASE("what a process tells arrives as it was") {
  Arrival arrival = at("10.0.0.2", "10.0.0.1", {4, 5});
  arrival.host_given = true;
  arrival.bind = "0.0.0.0";
  const Arrival read = arrival_from(to_text(arrival));
  CHECK(read.host == arrival.host);
  CHECK(read.host_given);
  CHECK(read.bind == arrival.bind);
  CHECK(read.port == arrival.port);
  CHECK(read.meeting_point == arrival.meeting_point);
  CHECK(read.processors == arrival.processors);
  for (const char* text : {"", "{}", "[1]",
                           R"({"host":"","host_given":false,"bind":"","port":1,)"
                           R"("meeting_point":"","processors":[]})"})
    CHECK_THROWS_AS(arrival_from(text), std::runtime_error);
}

TEST_CASE("ranks count the nodes of a file that lists them") {
  const Config config =
      parse_cluster("nodes: [{name: a, port: 1}, {name: b, port: 2}]\n", "cluster.yaml");
  LaunchPlace place;
  place.launcher = "Slurm";
  place.rank = 1;
  place.size = 2;
  CHECK(name_in_file(config, place) == "b");
  place.size = 3;
  CHECK_THROWS_WITH(name_in_file(config, place),
                    "cluster.yaml:1: nodes: the file lists 2, and Slurm has started 3 processes; "
                    "accepted: as many, no list (the processes are the nodes then), or --name, "
                    "which the launcher does not overrule");
}

}  // namespace dpwa::launch
