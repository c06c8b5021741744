#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "dpwa/cli/server_status_table.h"

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
  CHECK(table().find("2 at the end") != std::string::npos);
  server.document["at_end"] = cli::Json::array();
  CHECK(table().find("at the end") == std::string::npos);
}

}  // namespace dpwa
