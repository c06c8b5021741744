#include "dpwa/config/backends.h"

#include <doctest/doctest.h>

#include "dpwa/config/names.h"

using namespace dpwa;

TEST_CASE("the table of back ends has every one, in the order of the enumeration") {
  std::size_t index = 0;
  for (const BackendInfo& info : backends()) {
    CHECK(static_cast<std::size_t>(info.backend) == index++);
    CHECK(&backend_info(info.backend) == &info);
    const Config config = parse_cluster("nodes: [{name: w1, port: 24000}]\nbackend: " +
                                            std::string(config::name_of(info.backend)) + "\n",
                                        "cluster.yaml");
    CHECK(config.backend == info.backend);
  }
  CHECK(index == 4);
}

TEST_CASE("a setting that a back end or this build does not offer is refused at its line") {
  const auto error = [](const std::string& text) -> std::string {
    try {
      require_backend(parse_cluster("nodes: [{name: w1, port: 24000}]\n" + text, "c.yaml"));
    } catch (const ConfigError& refused) {
      return refused.what();
    }
    return "none";
  };
  CHECK(error("backend: null\n") == "none");
  if (backend_info(Backend::kvstore).absent.empty()) {
    const std::string servers = "{servers: [{name: s1, port: 24100}]";
    CHECK(error("backend: kvstore\nkvstore: " + servers + "}\n") == "none");
    CHECK(error("backend: kvstore\nkvstore:\n  type: dist_async\n") ==
          "c.yaml:3: kvstore.servers: missing; accepted: a list of {name, host, port}");
    CHECK(error("backend: kvstore\nkvstore: " + servers + "}\ngossip:\n  daemon: true\n") ==
          "c.yaml:5: gossip.daemon: 'true' is not offered by backend kvstore; accepted: false");
    CHECK(error("backend: kvstore\nkvstore: {type: local_update_cpu}\n") == "none");
    CHECK_THROWS_WITH_AS(
        require_backend(parse_cluster(
            "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\nbackend: kvstore\n"
            "kvstore: {type: local_allreduce_cpu}\n",
            "c.yaml")),
        "c.yaml:3: kvstore.type: 'local_allreduce_cpu' is for one process, and the file has 2 "
        "nodes; accepted: one node, or dist_sync, dist_async, dist_ssp",
        ConfigError);
  }
  if (!backend_info(Backend::collective).absent.empty()) return;
  const std::string nccl = error("backend: collective\ncollective:\n  engine: nccl\n");
  CHECK((nccl == "none" || nccl.starts_with("c.yaml:4: collective.engine: nccl: this LibTorch")));
  CHECK(error("backend: collective\ngossip:\n  daemon: true\n") ==
        "c.yaml:4: gossip.daemon: 'true' is not offered by backend collective; accepted: false");
  const std::string secret = "nodes: [{name: w1, host: 10.0.0.1, port: 24000}]\n";
  CHECK_THROWS_WITH_AS(
      require_backend(parse_cluster(
          secret + "backend: collective\nsecurity: {mode: psk, key_file: k}\ncollective:\n"
                   "  bucket_bytes: 0\n",
          "c.yaml")),
      doctest::Contains("c.yaml:4: collective.plaintext: the gradients of"), ConfigError);
}

TEST_CASE("a value that was read is refused at the line of its key, or of the section around it") {
  Config config = parse_cluster(
      "nodes: [{name: w1, port: 24000}]\ngossip:\n  blocks: 2\n  firewall: {distance: off}\n",
      "c.yaml");
  const auto line = [&config](const char* key) -> std::string {
    try {
      fail_at_key(config, key, "wrong; accepted: right");
    } catch (const ConfigError& refused) {
      return refused.what();
    }
  };
  CHECK(line("gossip.blocks") == "c.yaml:3: gossip.blocks: wrong; accepted: right");
  CHECK(line("gossip.firewall.distance") ==
        "c.yaml:4: gossip.firewall.distance: wrong; accepted: right");
  CHECK(line("gossip.daemon") == "c.yaml:2: gossip.daemon: wrong; accepted: right");
  CHECK(line("nodes") == "c.yaml:1: nodes: wrong; accepted: right");
  CHECK(line("log.file") == "c.yaml: log.file: wrong; accepted: right");
  config = Config{};
  CHECK(line("log.file") == "configuration: log.file: wrong; accepted: right");
}

TEST_CASE("a back end that the build lacks is refused with the reason and those that it has") {
  CHECK(available_backends().ends_with("null"));
  for (const BackendInfo& info : backends()) {
    Config config;
    config.backend = info.backend;
    config.file = "some/cluster.yaml";
    config.lines["backend"] = 3;
    if (info.absent.empty()) {
      config.nodes.resize(1);
      config.kvstore.servers.resize(1);
      CHECK_NOTHROW(require_backend(config));
      CHECK(available_backends().find(config::name_of(info.backend)) != std::string::npos);
    } else {
      CHECK_THROWS_WITH_AS(
          require_backend(config),
          ("some/cluster.yaml:3: backend: '" + std::string(config::name_of(info.backend)) + "' " +
           std::string(info.absent) + "; accepted: " + available_backends())
              .c_str(),
          ConfigError);
    }
  }
}
