#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "dpwa/cli/node_status.h"
#include "test/support/temporary_directory.h"

namespace dpwa {

TEST_CASE(
    "a server whose last part of a snapshot was not written is a problem, a former one none") {
  cli::NodeStatus server;
  server.name = "s1";
  server.document = cli::Json::parse(
      R"({"node": "s1", "state": "up", "snapshot": {"failures": 7, "failing": true}})");
  const auto problems = [&] { return cli::server_problems(std::vector{server}); };
  CHECK(problems() ==
        std::vector<std::string>{"server s1: the last part of a snapshot was not written"});
  for (const char* value : {"false", "\"true\"", "1"}) {
    server.document["snapshot"]["failing"] = cli::Json::parse(value);
    CHECK(problems().empty());
  }
}

TEST_CASE("a server whose replicas exceed its memory bound is a problem that names both") {
  cli::NodeStatus server;
  server.name = "s2";
  server.document = cli::Json::parse(
      R"({"node": "s2", "state": "up", "bytes": 1200000, "memory_bytes": 1000000})");
  CHECK(cli::server_problems(std::vector{server}) ==
        std::vector<std::string>{"server s2: holds 1.2 MB, with replicas more than its 1.0 MB "
                                 "(kvstore.memory_bytes)"});
  for (const unsigned bound : {0u, 1'200'000u}) {
    server.document["memory_bytes"] = bound;
    CHECK(cli::server_problems(std::vector{server}).empty());
  }
}

TEST_CASE("a server that lacks the votes of others is a problem that names them") {
  cli::NodeStatus server;
  server.name = "s2";
  server.document = cli::Json::parse(R"({"node": "s2", "state": "up", "undecided": ["s1", "w1"]})");
  CHECK(
      cli::server_problems(std::vector{server}) ==
      std::vector<std::string>{"server s2: cannot change the members without the vote of s1, w1"});
}

TEST_CASE("a server tells how many workers wait at their end") {
  cli::NodeStatus server;
  server.name = "s1";
  server.document = cli::Json::parse(
      R"({"node": "s1", "state": "up", "workers": [{"name": "w1"}], "at_end": ["w2", "w3"]})");
  const auto table = [&] {
    std::ostringstream out;
    cli::print_server_table({server}, out);
    return out.str();
  };
  CHECK(test::has(table(), "2 at the end"));
  server.document["at_end"] = cli::Json::array();
  CHECK_FALSE(test::has(table(), "at the end"));
}

TEST_CASE("the table of servers fits a terminal of 80 columns, with numbers of a long run") {
  cli::NodeStatus server{"server-1", "192.168.100.100:24000", "-", "", {}};
  server.document = cli::Json::parse(
      R"({"node": "server-1", "state": "up", "epoch": 1795747800123456, "workers": [{}, {}],
          "clock": 1234567, "slices": 1234, "bytes": 123456700000, "updates": 12345678,
          "snapshot": {"number": 123456, "age_s": 12345}, "dropped": 7, "without_replica": 3})");
  cli::NodeStatus absent{"server-2", "192.168.100.100:24000", "-", "Connection refused", {}};
  std::ostringstream out;
  cli::print_server_table({server, absent}, out);
  CAPTURE(out.str());
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  CHECK(test::has(out.str(), "7 dropped, 3 without replica"));
  CHECK_FALSE(test::has(out.str(), "1795747800123456"));  // of use to programs alone
  CHECK(test::has(out.str(),
                  "server-2  no answer: Connection refused; address 192.168.100.100:24000"));
}

}  // namespace dpwa
