#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/backends.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/names.h"
#include "dpwa/config/reload.h"
#include "test/dpwa/config/scratch_file.h"

// Every case walks the table, so a new key is covered.

namespace dpwa::config {
namespace {

constexpr const char* nodes = "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\n";

// What has to stand beside a key, or beside one value of it, where a check looks at several.
const std::map<std::string, std::string> companions = {
    {"observe.port", "open: true"},
    {"kvstore.staleness", "type: dist_ssp"},
    {"kvstore.compression.threshold", "type: 2bit"},
    {"kvstore.snapshots.every_ms", "folder: f"},
    {"kvstore.snapshots.keep", "folder: f"},
    {"security.mode=psk", "key_file: k"},
    {"security.mode=mtls", "ca: a, cert: c, key: k"},
    {"security.key_file", "mode: psk"},
    {"security.ca", "mode: mtls, cert: c, key: k"},
    {"security.cert", "mode: mtls, ca: a, key: k"},
    {"security.key", "mode: mtls, ca: a, cert: c"},
};

// What a file gives for a key: some values load, and some are refused.
struct Vectors {
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

// Of the keys whose accepted values are not only a range, a type or some words.
const std::map<std::string, Vectors> own_vectors = {
    {"seeds", {{"[a]", "['b:1', 'b:65535']"}, {"[]", "a"}}},
    {"cluster", {{"a", std::string(64, 'a')}, {"\"\"", std::string(65, 'a'), ".a"}}},
    {"gossip.seed", {{"0", "9223372036854775807"}, {"-1", "9223372036854775808"}}},
    {"collective.bucket_bytes", {{"0", "1GiB"}, {"-1", "1073741825"}}},
    {"kvstore.memory_bytes", {{"0", "1125899906842624"}, {"-1", "1125899906842625"}}},
    {"kvstore.lost_after_ms", {{"200", "86400000"}, {"0", "199", "1us", "86400001"}}},
    {"kvstore.servers",
     {{"[{name: s1, host: 127.0.0.1, port: 1}]", "[{name: s2, host: a, port: 65535}]"},
      {"[]", "s1"}}},
    {"kvstore.compression.threshold",
     {{"auto", "1.2e-38", "3.4e38"}, {"0", "-1", "large", "1e-320", "1e100", "inf", "nan"}}},
    {"log.file", {{"\"\"", "dpwa.log"}, {"[a]"}}},
};

// From what the key reference says that the key accepts.
Vectors vectors_of(const std::string& path, const Key& key) {
  if (const auto own = own_vectors.find(path); own != own_vectors.end()) return own->second;
  const std::string accepted = key.accepted.substr(0, key.accepted.find(';'));
  std::smatch match;
  if (accepted == "a duration above 0")
    return {{"0.000001", "86400000"}, {"0", "-1", "86400000.000001"}};
  if (accepted == "a duration") return {{"0", "86400000"}, {"-0.000001", "86400000.000001"}};
  if (accepted == "a path") return {{"k"}, {"\"\""}};
  if (std::regex_match(accepted, match, std::regex("a number of at least (\\d+)"))) {
    return {{match[1], "1.7976931348623157e308"},
            {std::to_string(std::stol(match[1]) - 1), "inf", "nan"}};
  }
  if (std::regex_match(accepted, match, std::regex("(\\d+) to (\\d+)"))) {
    return {{match[1], match[2]},
            {std::to_string(std::stoll(match[1]) - 1), std::to_string(std::stoll(match[2]) + 1),
             "inf", "nan"}};
  }
  Vectors words{{}, {"no-such-word"}};
  const std::regex word("`([^`]+)`");
  for (std::sregex_iterator one(accepted.begin(), accepted.end(), word), end; one != end; ++one)
    words.good.push_back((*one)[1]);
  return words;
}

std::string companion_of(const std::string& path, const std::string& value) {
  for (const std::string& key : {path + "=" + value, path}) {
    const auto found = companions.find(key);
    if (found != companions.end()) return ", " + found->second;
  }
  return "";
}

// A cluster file whose third line gives this key alone: "gossip: {firewall: {\ndistance: clip}}".
std::string file_with(const std::string& section, const std::string& key,
                      const std::string& beside = "") {
  if (section.empty()) return std::string(nodes) + "\n" + key + "\n";
  std::string open;
  std::string close;
  for (std::size_t begin = 0; begin != std::string::npos;) {
    const std::size_t dot = section.find('.', begin);
    open += section.substr(begin, dot - begin) + ": {";
    close += '}';
    begin = dot == std::string::npos ? dot : dot + 1;
  }
  return nodes + open + "\n" + key + beside + close + "\n";
}

Config loaded(const std::string& text) {
  Config config = parse_cluster(text, "c.yaml");
  config.self = "w1";
  return config;
}

std::string error_of(const std::string& text) {
  try {
    parse_cluster(text, "c.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

// Calls `check` with each key that is an ordinary one. The list `nodes` has tests of its own.
template <class Check>
void each_key(const Check& check) {
  for (const KeySection& section : key_table()) {
    for (const Key& key : section.keys) {
      const std::string path = path_of(section, key);
      CAPTURE(path);
      if (path != "nodes") check(section, key, path);
    }
  }
}

}  // namespace

TEST_CASE("every key loads at each of its bounds, and prints as a file that loads to the same") {
  each_key([](const KeySection& section, const Key& key, const std::string& path) {
    const std::vector<std::string> bounds = vectors_of(path, key).good;
    REQUIRE_FALSE(bounds.empty());
    const Config plain = loaded(nodes);
    std::set<std::string> printed;
    for (const std::string& bound : bounds) {
      CAPTURE(bound);
      const Config config =
          loaded(file_with(section.path, key.name + ": " + bound, companion_of(path, bound)));
      const Config again = loaded(to_yaml(config));
      test::check_same(config, again);
      CHECK(to_yaml(again) == to_yaml(config));
      printed.insert(key.print(config).value_or(""));
      if (!companion_of(path, bound).empty()) continue;
      each_key([&](const KeySection&, const Key& other, const std::string& other_path) {
        if (other_path != path)
          CHECK(other.print(config) == other.print(plain));  // no other has changed
      });
    }
    CHECK(printed.size() == bounds.size());  // what the file gives has reached its field
  });
}

TEST_CASE("the names of types that MXNet has are read, and printed as those of dpwa") {
  for (const auto& [alias, type] :
       {std::pair{"local", "local_update_cpu"}, std::pair{"device", "local_allreduce_device"},
        std::pair{"dist_sync_device", "dist_sync"}, std::pair{"dist_device_sync", "dist_sync"}}) {
    CAPTURE(alias);
    const Config config = parse_cluster(
        std::string("nodes: [{name: w1, port: 24000}]\nbackend: kvstore\nkvstore: {type: ") +
            alias + ", servers: [{name: s1, port: 24100}]}\n",
        "c.yaml");
    CHECK(config::name_in(config::kvstore_type_words, config.kvstore.type) == std::string(type));
  }
}

TEST_CASE("every key is refused beyond its bounds, with its line and its name") {
  each_key([](const KeySection& section, const Key& key, const std::string& path) {
    for (const std::string& value : vectors_of(path, key).bad) {
      CAPTURE(value);
      const std::string error =
          error_of(file_with(section.path, key.name + ": " + value, companion_of(path, value)));
      CHECK(error.starts_with("c.yaml:3: " + path + ": "));
      CHECK(error.find("accepted: ") != std::string::npos);
    }
  });
}

TEST_CASE("every key is suggested where it is misspelt") {
  each_key([](const KeySection& section, const Key& key, const std::string& path) {
    const std::string misspelt = key.name + "x";
    const std::string error =
        error_of(file_with(section.path, misspelt + ": 1", companion_of(path, "")));
    CHECK(error.starts_with("c.yaml:3: " + (section.path.empty() ? "" : section.path + ".") +
                            misspelt + ": unknown key, did you mean '" + key.name + "'?"));
  });
}

TEST_CASE("a key of a section that stands at the top level is suggested with its section") {
  for (const char* path : {"gossip.blend", "gossip.firewall.distance", "log.level",
                           "collective.bucket_bytes", "security.key_file", "transport.encoding"}) {
    const std::string name = std::string(path).substr(std::string(path).rfind('.') + 1);
    CHECK(error_of(file_with("", name + ": 1"))
              .starts_with("c.yaml:3: " + name + ": unknown key, did you mean '" + path + "'?"));
  }
}

TEST_CASE("a reload takes over the keys that say so, and names every one that differs") {
  each_key([](const KeySection& section, const Key& key, const std::string& path) {
    const Config running = loaded(nodes);
    for (const std::string& bound : vectors_of(path, key).good) {
      const Config fresh =
          loaded(file_with(section.path, key.name + ": " + bound, companion_of(path, bound)));
      if (key.print(running) == key.print(fresh)) continue;
      CAPTURE(bound);
      const ReloadPlan plan = plan_reload(running, fresh);
      const auto names_it = [&](const std::vector<ReloadPlan::Change>& changes) {
        return std::ranges::find(changes, path, &ReloadPlan::Change::key) != changes.end();
      };
      CHECK(names_it(plan.applied) == key.reloads);
      CHECK(names_it(plan.kept) == !key.reloads);
      CHECK(key.print(plan.config) == key.print(key.reloads ? fresh : running));
    }
  });
}

TEST_CASE("every key says what it means, and its default is one of the values that it accepts") {
  each_key([](const KeySection& section, const Key& key, const std::string& path) {
    CHECK_FALSE(key.meaning.empty());
    CHECK_FALSE(key.accepted.empty());
    if (key.default_value.empty()) return;
    const Config config = loaded(file_with(section.path, key.name + ": " + key.default_value,
                                           companion_of(path, key.default_value)));
    CHECK(key.print(config) == key.print(loaded(nodes)));
  });
}

TEST_CASE("the keys that all processes of a run need alike are stated with their values") {
  const Config config = loaded(std::string(nodes) +
                               "kvstore: {servers: [{name: s1, port: 1}, {name: s2, port: 2}]}\n");
  CHECK(shared_settings(config, "kvstore") == Settings{{"kvstore.type", "dist_sync"},
                                                       {"kvstore.staleness", "0"},
                                                       {"kvstore.update", "auto"},
                                                       {"kvstore.replicas", "0"},
                                                       {"kvstore.servers", "s1, s2"}});
  CHECK(shared_settings(config, "collective") == Settings{{"collective.bucket_bytes", "26214400"},
                                                          {"collective.compression", "none"},
                                                          {"collective.average_buffers", "false"},
                                                          {"collective.on_lost_rank", "stop"},
                                                          {"collective.minority", "stop"}});
}

TEST_CASE("snapshots without a folder are refused at the line of their section") {
  const std::string expected =
      "c.yaml:3: kvstore.snapshots.folder: missing; accepted: a path, or no section "
      "kvstore.snapshots";
  CHECK(error_of(std::string(nodes) + "kvstore:\n  snapshots: {every_ms: 1000}\n") == expected);
  CHECK(error_of(std::string(nodes) + "kvstore:\n  snapshots: {}\n") == expected);
  CHECK(error_of(std::string(nodes) + "kvstore:\n  snapshots: {folder: f}\n") == "none");
  CHECK(to_yaml(loaded(nodes)).find("snapshots:") == std::string::npos);
}

TEST_CASE("a wrong place of updates is refused with the places and the types that allow them") {
  const auto error = [](const std::string& keys) {
    return error_of(std::string(nodes) + "kvstore: {" + keys + "}\n");
  };
  CHECK(
      error("update: workers") ==
      "c.yaml:2: kvstore.update: 'workers' is unknown, did you mean 'worker'? accepted: auto "
      "(by the number of parameters), server (the optimizer runs on the servers), worker (it runs "
      "on each worker, which needs the mean of all pushes: type dist_sync, or dist_ssp with "
      "staleness: 0)");
  CHECK(error("update: worker, type: dist_async") ==
        "c.yaml:2: kvstore.update: type dist_async makes an update at each push, which only "
        "servers can do; accepted: auto, server, or type dist_sync, or dist_ssp with staleness: 0");
  CHECK(error("update: worker, type: dist_ssp, staleness: 2").find("type dist_ssp makes") !=
        std::string::npos);
  CHECK(error("update: worker, type: dist_ssp") == "none");
  CHECK(
      error("update: worker, snapshots: {folder: f}") ==
      "c.yaml:2: kvstore.update: the servers then have no weights, and a run cannot continue from "
      "their snapshots (kvstore.snapshots); accepted: auto, server, or no snapshots, and "
      "checkpoints of the workers");
  CHECK(error("update: auto, snapshots: {folder: f}") == "none");
}

TEST_CASE("a key or a section that is not in the table is an error of the program") {
  CHECK(find_key("gossip.nothing") == nullptr);
  CHECK_THROWS_AS(key_at("gossip"), std::logic_error);
  CHECK_THROWS_AS(section_at("gossip.timeout_ms"), std::logic_error);
}

}  // namespace dpwa::config

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
    CHECK(error("backend: kvstore\nkvstore: " + servers + ", min_workers: 2}\n") ==
          "c.yaml:3: kvstore.min_workers: 2 workers, and nodes lists 1; accepted: 0 to 1");
    CHECK(error("backend: kvstore\nkvstore: " + servers + ", min_workers: 1}\n") == "none");
    CHECK(error("backend: kvstore\nkvstore: " + servers +
                ", compression: {type: fp16, threshold: 0.1}}\n") ==
          "c.yaml:3: kvstore.compression.threshold: is only for type 2bit; accepted: auto, or that "
          "type");
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
        "c.yaml:3: kvstore.type: 'local_allreduce_cpu' is for one process, and there are 2 "
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
                   "  engine: gloo\n",
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

TEST_CASE("nodes of IPv4 and IPv6 are refused to Gloo, at the line of the first other") {
  if (!backend_info(Backend::collective).absent.empty()) return;
  const std::string nodes =
      "nodes:\n"
      "  - {name: w1, host: 127.0.0.1, port: 24000}\n"
      "  - {name: w2, host: 127.0.0.1, port: 24001}\n"
      "  - {name: w3, host: \"::1\", port: 24002}\n";
  CHECK_THROWS_WITH_AS(
      require_backend(
          parse_cluster(nodes + "backend: collective\ncollective: {engine: gloo}\n", "c.yaml")),
      "c.yaml:4: nodes[2].host: 'w1' has 127.0.0.1, 'w3' has ::1; engine gloo cannot connect IPv4 "
      "with IPv6; accepted: addresses of one family for all nodes, or engine dpwa",
      ConfigError);
  CHECK_NOTHROW(require_backend(parse_cluster(nodes + "backend: collective\n", "c.yaml")));
  CHECK_NOTHROW(require_backend(parse_cluster(nodes + "backend: gossip\n", "c.yaml")));
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
