#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dpwa/cli/text_table.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/support/free_ports.h"
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

TEST_CASE("status shows a running node and a row for one that does not answer") {
  const auto ports = test::free_ports(2);
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
  CHECK(table.out.find("training") != std::string::npos);
  CHECK(table.out.find("0.2500") != std::string::npos);
  CHECK(table.out.find("no answer: ") != std::string::npos);

  const auto json = test::run_cli({"status", "--config", file.path(), "--json"});
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["cluster"] == "test");
  CHECK(document["nodes"][0]["answered"] == true);
  CHECK(document["nodes"][0]["status"]["clock"] == 1.0);
  CHECK(document["nodes"][0]["status"]["encoding"] == "int8");
  CHECK(document["nodes"][0]["status"]["peers"][0]["name"] == "w2");
  CHECK(document["nodes"][1]["answered"] == false);
}

TEST_CASE("a text table lines its columns up and lets a short row run on") {
  cli::TextTable table({"a", "bb", "c"});
  table.add({"long", "x", "1"});
  table.add({"y", "everything that went wrong"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "a     bb  c\nlong  x   1\ny     everything that went wrong\n");
}

}  // namespace dpwa
