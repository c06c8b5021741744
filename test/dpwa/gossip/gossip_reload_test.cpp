#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "dpwa/net/free_ports.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {

TEST_CASE("a reload compares the own entry with what is in force, not with the file before") {
  const test::LogFile restored;  // a reload opens the log of its file
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config({ports[0]}, 0);
  const auto log = std::filesystem::temp_directory_path() /
                   ("dpwa-gossip-reload-" + std::to_string(ports[0]) + ".log");
  config.log.file = log.string();
  test::VectorNode node(config, 8);
  const auto said = [&](const Config& fresh) {
    std::filesystem::remove(log);
    node.gossip().reload(fresh);
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str();
  };
  Config edited = config;
  edited.nodes[0].port = ports[1];
  edited.nodes[0].cores = {0};
  const std::string restart = "needs a restart, not taken over: nodes[w1].";
  for (int times = 0; times < 2; ++times) {  // as long as they differ
    const std::string lines = said(edited);
    CHECK(lines.find(restart + "port: " + std::to_string(ports[0]) + " -> " +
                     std::to_string(ports[1])) != std::string::npos);
    CHECK(lines.find(restart + "cores: none -> [0]") != std::string::npos);
  }
  const std::string reverted = said(config);
  CHECK(reverted.find("needs a restart") == std::string::npos);
  CHECK(reverted.find("reloaded: the cluster file has not changed") != std::string::npos);
  std::filesystem::remove(log);
}

}  // namespace dpwa
