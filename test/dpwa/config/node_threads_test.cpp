#include "dpwa/config/node_threads.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace dpwa {

TEST_CASE("nodes are on one host by host name, by address, and on any loopback address") {
  Config config;
  const auto add = [&](const char* name, const char* host, std::vector<std::string> addresses) {
    NodeEntry node;
    node.name = name;
    node.host = host;
    node.addresses = std::move(addresses);
    config.nodes.push_back(std::move(node));
  };
  add("a", "10.0.0.1", {"10.0.0.1"});
  add("b", "big.example", {"10.0.0.1", "fd00::1"});
  add("c", "10.0.0.2", {"10.0.0.2"});
  add("d", "big.example", {});
  add("e", "localhost", {"127.0.0.1", "::1"});
  add("f", "127.0.0.2", {"127.0.0.2"});
  const auto here = [&](const char* name) {
    config.self = name;
    return nodes_on_own_host(config);
  };
  CHECK(here("a") == 2);
  CHECK(here("b") == 3);
  CHECK(here("c") == 1);
  CHECK(here("e") == 2);
  CHECK(here("f") == 2);
  CHECK(place_on_own_host(config) == 1);
  CHECK(here("b") == 3);
  CHECK(place_on_own_host(config) == 1);
  CHECK(here("c") == 1);
  CHECK(place_on_own_host(config) == 0);
}

TEST_CASE("a node computes with its cores, else with its share of the processors of its host") {
  Config config;
  for (const char* name : {"a", "b", "c", "d"}) {
    NodeEntry node;
    node.name = name;
    config.nodes.push_back(node);  // all on 127.0.0.1
  }
  config.self = "a";
  CHECK(nodes_on_own_host(config) == 4);
  CHECK(node_threads(config, 16) == 4);
  CHECK(node_threads(config, 7) == 1);
  CHECK(node_threads(config, 2) == 1);
  config.nodes[0].cores = {4, 5};
  CHECK(node_threads(config, 16) == 2);
  config.nodes[0].cores.clear();
  config.nodes.resize(1);
  CHECK(node_threads(config, 2) == 2);
  CHECK(node_threads(config) >= 1);
}

}  // namespace dpwa
