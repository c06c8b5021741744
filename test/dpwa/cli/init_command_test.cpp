#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "dpwa/base/threads.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/keys.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE("init writes a file that loads with every default and cores in turn") {
  const ScratchFile folder("");
  const std::string file = (folder.path().parent_path() / "new.yaml").string();
  const CliResult result = run_cli({"init", "-o", file});
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  CHECK(result.err == "wrote " + file + ": 4 nodes on 127.0.0.1, ports 24000 to 24003\n");

  const Config config = load_cluster(file);
  const std::vector<int> processors = usable_processors();
  Config expected;
  expected.interpolation.parameters = {{"value", 0.5}};
  for (int i = 0; i < 4; ++i) {
    NodeEntry node;
    node.name = std::vector<std::string>{"w1", "w2", "w3", "w4"}[static_cast<std::size_t>(i)];
    node.port = static_cast<std::uint16_t>(24000 + i);
    node.cores = {processors[static_cast<std::size_t>(i) % processors.size()]};
    node.addresses = {"127.0.0.1"};
    node.bind_address = "127.0.0.1";
    expected.nodes.push_back(node);
  }
  check_same(config, expected);
}

TEST_CASE("init writes at most 20 keys, those of its back end, with what they mean") {
  std::set<std::string> written;
  std::set<std::string> with_comment;
  for (const std::string backend : {"gossip", "collective", "kvstore"}) {
    CAPTURE(backend);
    const std::string text = run_cli({"init", "--backend", backend, "-o", "-"}).out;
    std::size_t keys = 2;  // nodes, and the mode of security
    for (const config::KeySection& section : config::key_table()) {
      for (const config::Key& key : section.keys) {
        if (key.comment.empty()) continue;
        const std::string path = config::path_of(section, key);
        with_comment.insert(path);
        if (text.find(key.comment) == std::string::npos) continue;
        CAPTURE(path);
        const std::string value = path == "backend" ? backend : key.default_value;
        CHECK(test::has(text, key.name + ": " + value));
        written.insert(path);
        ++keys;
      }
    }
    CHECK(keys >= 10);
    CHECK(keys <= 20);
    CHECK((test::has(text, "\ngossip:")) == (backend == "gossip"));
  }
  CHECK(written == with_comment);
}

TEST_CASE("init never replaces a file unless told to") {
  const ScratchFile file("precious\n");
  const std::string path = file.path().string();
  const CliResult refused = run_cli({"init", "-o", path});
  CHECK(refused.exit_code == 2);
  CHECK(test::has(refused.err, "exists; accepted: another file, or --force to replace it"));
  CHECK(read_text(file.path()) == "precious\n");
  const auto nowhere = file.path().parent_path() / "none" / "new.yaml";
  CHECK(run_cli({"init", "-o", nowhere.string()}).exit_code == 2);
  CHECK(run_cli({"init", "--force", "--nodes", "2", "-o", path}).exit_code == 0);
  CHECK(load_cluster(file.path()).nodes.size() == 2);
}

TEST_CASE("init chooses ports below those of outgoing connections, for the most nodes too") {
  const ScratchFile file(run_cli({"init", "--nodes", "10000", "-o", "-"}).out);
  const Config config = load_cluster(file.path());
  REQUIRE(config.nodes.size() == 10000);
  CHECK(config.nodes.front().port == 22768);
  CHECK(config.nodes.back().port == 32767);
}

TEST_CASE("init warns of ports that an outgoing connection may hold") {
  const auto said = [](const char* port, const char* nodes) {
    const CliResult result = run_cli({"init", "--port", port, "--nodes", nodes, "-o", "-"});
    CHECK(result.exit_code == 0);
    return result.err;
  };
  CHECK(said("32764", "4").empty());
  CHECK(said("61000", "4").empty());
  CHECK(
      said("32765", "4") ==
      "warning: ports 32765 to 32768 overlap the range that Linux assigns to outgoing connections "
      "(32768 to 60999), so a node may find its port in use; --port 32764 or lower avoids this\n");
  CHECK(said("60999", "2").starts_with("warning: "));
}

TEST_CASE("init --hosts deals the nodes out to the hosts in turn") {
  const std::string hosts = "203.0.113.1 , 203.0.113.2";
  const ScratchFile one_each(run_cli({"init", "--hosts", hosts, "-o", "-"}).out);
  const auto nodes = load_cluster(one_each.path()).nodes;
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[1].name == "w2");
  CHECK(nodes[1].host == "203.0.113.2");
  CHECK(nodes[1].port == 24000);
  CHECK(nodes[1].cores.empty());
  const ScratchFile file(
      run_cli({"init", "--hosts", hosts, "--nodes", "5", "--port", "7000", "-o", "-"}).out);
  const Config config = load_cluster(file.path());
  REQUIRE(config.nodes.size() == 5);
  CHECK(config.nodes[1].host == "203.0.113.2");
  CHECK(config.nodes[1].port == 7000);
  CHECK(config.nodes[4].host == "203.0.113.1");
  CHECK(config.nodes[4].port == 7002);
  CHECK(has(run_cli({"init", "--hosts", hosts, "--nodes", "1", "-o", "-"}).err,
            "--nodes: 1 nodes on 2 hosts; accepted: at least one for each"));
}

TEST_CASE("init with hosts of both kinds warns of each kind by its hosts") {
  const std::vector<std::string> mixed{"init", "--hosts", "127.0.0.1,203.0.113.7,::1", "-o", "-"};
  const std::string loopback =
      "warning: 127.0.0.1, ::1 are loopback: nodes on other machines do not reach the nodes "
      "there\n";
  const CliResult by_default = run_cli(mixed);
  CHECK(load_cluster(ScratchFile(by_default.out).path()).security.mode == "psk");
  CHECK_FALSE(test::has(by_default.err, "insecure"));
  CHECK(by_default.err.ends_with(loopback));

  std::vector<std::string> insecure = mixed;
  insecure.insert(insecure.end(), {"--security", "insecure"});
  const CliResult open = run_cli(insecure);
  CHECK(load_cluster(ScratchFile(open.out).path()).security.mode == "insecure");
  CHECK(open.err ==
        "warning: 203.0.113.7 is not loopback, so the file says security: {mode: insecure}; use it "
        "on a private network only\n" +
            loopback);
  CHECK(run_cli({"init", "--hosts", "127.0.0.1,::1", "-o", "-"}).err.empty());
}

TEST_CASE("init beyond loopback, or with --security psk, writes psk and says where the key goes") {
  const ScratchFile scratch("");
  const auto folder = scratch.path().parent_path();
  const std::string file = (folder / "new.yaml").string();
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--security", "psk"},
        {"--host", "203.0.113.7"},
        {"--hosts", "127.0.0.1,203.0.113.7"},
        {"--host", "203.0.113.7", "--backend", "kvstore"}}) {
    std::vector<std::string> arguments{"init", "--force", "-o", file};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 0);
    CHECK(test::has(result.err,
                    "\nthe nodes need a key: make it once with dpwa keygen -o " +
                        (folder / "cluster.key").string() +
                        "; every machine has a copy beside its copy of the cluster file\n"));
    const Config config = load_cluster(file);
    CHECK(config.security.mode == "psk");
    CHECK(config.security.key_file == folder / "cluster.key");
  }
  CHECK(run_cli({"init", "--security", "mtls", "-o", "-"}).exit_code == 2);
}

TEST_CASE("every file that init writes passes config check, also as one of its nodes") {
  const ScratchFile scratch("");
  const auto folder = scratch.path().parent_path();
  const std::string file = (folder / "new.yaml").string();
  REQUIRE(run_cli({"keygen", "-o", (folder / "cluster.key").string()}).exit_code == 0);
  for (const std::string backend : {"gossip", "collective", "kvstore"}) {
    const bool is_built =
        backend != "collective" || backend_info(Backend::collective).absent.empty();
    const int checked = is_built ? 0 : 2;  // a build without LibTorch lacks it
    for (const char* hosts : {"127.0.0.1", "127.0.0.1,203.0.113.7", "203.0.113.7,203.0.113.8",
                              "203.0.113.1,2001:db8::1"}) {
      for (const std::vector<std::string>& security :
           {std::vector<std::string>{}, {"--security", "psk"}, {"--security", "insecure"}}) {
        std::vector<std::string> options{"init", "--force",   "-o",    file,      "--hosts",
                                         hosts,  "--backend", backend, "--nodes", "3"};
        options.insert(options.end(), security.begin(), security.end());
        std::string line;
        for (const std::string& option : options) line += option + ' ';
        CAPTURE(line);
        std::filesystem::remove(file);
        CHECK(run_cli(options).exit_code == 0);
        CHECK(run_cli({"config", "check", file}).exit_code == checked);
        CHECK(run_cli({"config", "check", file, "--name", "w1"}).exit_code == checked);
      }
    }
  }
}

TEST_CASE("init for a parameter server writes its servers after the nodes, on the hosts in turn") {
  const ScratchFile file(
      run_cli({"init", "--backend", "kvstore", "--nodes", "3", "--port", "20000", "-o", "-"}).out);
  const Config config = load_cluster(file.path());
  CHECK(config.backend == Backend::kvstore);
  REQUIRE(config.kvstore.servers.size() == 2);
  CHECK(config.kvstore.servers[0].name == "s1");
  CHECK(config.kvstore.servers[0].port == 20003);
  CHECK(config.kvstore.servers[1].port == 20004);
  const ScratchFile hosts(
      run_cli({"init", "--backend", "kvstore", "--hosts", "203.0.113.1,203.0.113.2", "--servers",
               "3", "--port", "7000", "-o", "-"})
          .out);
  const auto servers = load_cluster(hosts.path()).kvstore.servers;
  REQUIRE(servers.size() == 3);
  CHECK(servers[1].host == "203.0.113.2");
  CHECK(servers[1].port == 7001);
  CHECK(servers[2].host == "203.0.113.1");
  CHECK(servers[2].port == 7002);
  CHECK(
      test::has(run_cli({"init", "--servers", "2", "-o", "-"}).err, "accepted: --backend kvstore"));
}

TEST_CASE("init refuses hosts and ports that cannot work") {
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "init");
    arguments.insert(arguments.end(), {"-o", "-"});
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(has(error({"--host", "a b"}), "'a b' is not a host"));
  CHECK(has(error({"--host", "0.0.0.0"}), "not an address that peers can dial"));
  CHECK(has(error({"--host", "no-such-host.invalid"}), "cannot be resolved"));
  CHECK(has(error({"--port", "65534", "--nodes", "3"}), "reach port 65536"));
  CHECK(has(error({"--port", "65534", "--nodes", "3"}), "accepted: a port up to 32765 "));
  CHECK(has(error({"--hosts", "127.0.0.1,a b"}), "'a b' is not a host"));
  CHECK(has(error({"--hosts", "203.0.113.1,203.0.113.1"}), "the same machine as '203.0.113.1'"));
  for (const char* hosts : {"203.0.113.1,,203.0.113.2", "203.0.113.1, ", ",203.0.113.1"})
    CHECK(has(error({"--hosts", hosts}), "--hosts: '' is not a host; accepted: "));
  CHECK(has(error({"--hosts", "203.0.113.1", "--host", "::1"}), "--host"));
}

using dpwa::cli::LocalMachine;

namespace {

NodeEntry node_at(const std::string& host, const std::vector<std::string>& addresses) {
  NodeEntry node;
  node.host = host;
  node.addresses = addresses;
  return node;
}

}  // namespace

TEST_CASE("a node is local by loopback, interface address or host name") {
  const LocalMachine machine("gamma", {"10.0.0.3", "fe80::1"});
  CHECK(machine.hosts(node_at("localhost", {"127.0.0.1"})));
  CHECK(machine.hosts(node_at("127.0.1.1", {"127.0.1.1"})));
  CHECK(machine.hosts(node_at("10.0.0.3", {"10.0.0.3"})));
  CHECK(machine.hosts(node_at("fe80::1%eth0", {"fe80::1%eth0"})));
  CHECK(machine.hosts(node_at("gamma", {"198.51.100.1"})));
  CHECK_FALSE(machine.hosts(node_at("10.0.0.4", {"10.0.0.4"})));
  CHECK_FALSE(machine.hosts(node_at("delta", {"10.0.0.4", "fe80::2"})));
}
