#include "bench/pull/pull_group.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "bench/worker/group.h"
#include "dpwa/config/config.h"
#include "dpwa/security/key_file.h"

using namespace dpwa;
using namespace dpwa::bench;

TEST_CASE("the settings of a benchmark reach the nodes") {
  NodeSettings settings;
  settings.checksum = false;
  settings.chunk_bytes = 1 << 20;
  const ClusterFile file(settings, {24001, 24002});
  CHECK(file.chunk_bytes() == 1 << 20);
  const Config config = load_config(file.path(), "w2");
  CHECK(config.nodes.size() == 2);
  CHECK(config.self_node().port == 24002);
  CHECK(config.transport.encoding == Codec::raw);
  CHECK_FALSE(config.transport.checksum);
  CHECK(config.security.mode == "insecure");
}

TEST_CASE("the file asks for the path that is to be measured") {
  NodeSettings settings;
  CHECK(cluster_file_text(settings, {1}).find("same_host: off") != std::string::npos);
  settings.transport = "same_host";
  CHECK(cluster_file_text(settings, {1}).find("same_host: auto") != std::string::npos);
  settings.security = "psk";
  settings.key_file = "k";
  CHECK(cluster_file_text(settings, {1}).find("mode: psk\n  key_file: \"k\"\n") !=
        std::string::npos);
}

TEST_CASE("psk without a key file gets a key for the length of the run") {
  NodeSettings settings;
  settings.security = "psk";
  std::string key_file;
  {
    const ClusterFile file(settings, {24001});
    key_file = load_config(file.path(), "w1").security.key_file;
    CHECK(read_key_file(key_file).has_value());
  }
  CHECK_FALSE(std::filesystem::exists(key_file));
}

TEST_CASE("settings that the loader refuses end in its words, without the file") {
  NodeSettings settings;
  settings.encoding = "fp7";
  try {
    const ClusterFile file(settings, {24001});
    FAIL("accepted");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()).starts_with("transport.encoding: 'fp7'"));
  }
}

TEST_CASE("the file is gone with its owner") {
  std::string path;
  {
    const ClusterFile file(NodeSettings{}, {24001});
    path = file.path();
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_CASE("of a pair the first pulls from the second, of all every one from any") {
  Topology topology;
  topology.pairs = 2;
  CHECK(topology.nodes() == 4);
  CHECK(topology.pulls(0));
  CHECK_FALSE(topology.pulls(1));
  CHECK(topology.partner(2) == 3);
  CHECK(topology.partner(3) == 2);
  topology.all_pull = 3;
  CHECK(topology.nodes() == 3);
  CHECK(topology.pulls(1));
  CHECK_FALSE(topology.partner(1));
}
