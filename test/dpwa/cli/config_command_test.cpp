#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "dpwa/base/processors.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/names.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

const char* three_nodes = R"(cluster: demo
nodes:
  - {name: w1, host: 127.0.0.1, port: 24000, cores: [0, 1]}
  - {name: w2, host: localhost, port: 24001}
  - {name: far, host: 203.0.113.7, port: 24000, cores: [2]}
security: {mode: insecure}
)";

}  // namespace

TEST_CASE("config check prints the effective configuration, which checks out again") {
  const ScratchFile file(three_nodes);
  const CliResult first = run_cli({"config", "check", file.path().string()});
  CHECK(first.exit_code == 0);
  CHECK(first.err == "ok: " + file.path().string() + ": cluster demo, 3 nodes\n");
  CHECK(first.out.starts_with("cluster: demo\n"));
  const ScratchFile effective(first.out);
  CHECK(run_cli({"config", "check", effective.path().string()}).out == first.out);
}

TEST_CASE("config check does not say ok when its output cannot be written") {
  const ScratchFile file(three_nodes);
  const std::string path = file.path().string();
  const std::vector<const char*> argv{"dpwa", "config", "check", path.c_str(), "--name", "w1"};
  std::ofstream full("/dev/full");
  std::ostringstream err;
  CHECK(cli::run(static_cast<int>(argv.size()), argv.data(), full, err) == 1);
  CHECK(err.str() == "dpwa: cannot write the result\n");
}

TEST_CASE("config check looks at the key file, also without a name") {
  for (const std::string nodes : {"nodes: [{name: w1, port: 24000}]\n", ""}) {
    CAPTURE(nodes);
    const ScratchFile file(nodes + "security: {mode: psk, key_file: not-there.key}\n");
    const std::string path = file.path().string();
    const CliResult result = run_cli({"config", "check", path});
    CHECK(result.exit_code == 2);
    CHECK(test::has(result.err, "security.key_file: "));
    CHECK(test::has(result.err, "not-there.key"));
    CHECK(result.out.empty());
  }
}

TEST_CASE("config check without a name wants the files of one process of the file") {
  const ScratchFile scratch("");
  const auto folder = scratch.path().parent_path();
  REQUIRE(run_cli({"keygen", "-o", (folder / "s1.key").string()}).exit_code == 0);
  const ScratchFile file(
      "nodes: [{name: w1, port: 24000}]\nbackend: kvstore\n"
      "kvstore: {servers: [{name: s1, port: 24100}]}\n"
      "security: {mode: psk, key_file: '" +
      (folder / "{name}.key").string() + "'}\n");
  CHECK(run_cli({"config", "check", file.path().string()}).exit_code == 0);
  CHECK(run_cli({"config", "check", file.path().string(), "--name", "w1"}).exit_code == 2);
}

TEST_CASE("config check as a node applies the environment") {
  const ScratchFile file(three_nodes);
  const ScopedVariable port("DPWA_PORT", "25000");
  const CliResult result = run_cli({"config", "check", file.path().string(), "--name", "w2"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.ends_with("; w2 listens on localhost port 25000\n"));
  CHECK(test::has(result.out, "port: 25000"));
}

namespace {

// Of backend kvstore. `more` begins with ", ".
std::string file_with_servers(const std::string& more = "") {
  return "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\nbackend: kvstore\n"
         "kvstore: {servers: [{name: s1, port: 24100}, {name: s2, port: 24101}]" +
         more + "}\n";
}

CliResult check_as(const std::string& name, const std::string& text) {
  const ScratchFile file(text);
  CliResult result = run_cli({"config", "check", file.path().string(), "--name", name});
  const std::string path = file.path().string();
  for (auto at = result.err.find(path); at != std::string::npos; at = result.err.find(path))
    result.err.replace(at, path.size(), "c.yaml");
  return result;
}

}  // namespace

TEST_CASE("config check takes the name of a server and says where it listens") {
  const auto listens = [](const std::string& port) {
    const CliResult result = check_as("s2", file_with_servers());
    CHECK(result.exit_code == 0);
    CHECK(result.err ==
          "ok: c.yaml: cluster dpwa, 2 nodes; server s2 listens on 127.0.0.1 port " + port + "\n");
    CHECK(result.out.starts_with("cluster: dpwa\n"));
  };
  listens("24101");
  const ScopedVariable port("DPWA_PORT", "25000");
  listens("25000");
}

TEST_CASE("config check as a server refuses what the server would refuse") {
  const auto error = [](const std::string& text) {
    const CliResult result = check_as("s1", text);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(error(file_with_servers() + "security: {mode: psk, key_file: /no/such}\n")
            .starts_with("c.yaml:4: security.key_file: "));
  CHECK(error(file_with_servers(", type: local_update_cpu")) ==
        "c.yaml:3: kvstore.type: this type has no servers; accepted: dist_sync, dist_async, "
        "dist_ssp\n");
  CHECK(error(file_with_servers(", min_workers: 3"))
            .starts_with("c.yaml:3: kvstore.min_workers: 3 workers, and nodes lists 2"));
  std::string gossip = file_with_servers();
  gossip.replace(gossip.find("backend: kvstore"), 16, "backend: gossip");
  CHECK(error(gossip) == "c.yaml:2: backend: has no servers; accepted: kvstore\n");
}

TEST_CASE("config check of an unknown name lists nodes and servers") {
  CHECK(check_as("x9", file_with_servers()).err ==
        "c.yaml:1: nodes: no node or server is named 'x9'; accepted: w1, w2, s1, s2\n");
  CHECK(check_as("s11", file_with_servers()).err ==
        "c.yaml:1: nodes: no node or server is named 's11'; did you mean 's1'? accepted: w1, w2, "
        "s1, s2\n");
  CHECK(check_as("x9", "nodes: [{name: w1, port: 24000}]\n").err ==
        "c.yaml:1: nodes: no node is named 'x9'; accepted: w1\n");
}

TEST_CASE("config check of a bad file is one line and exit code 2") {
  const ScratchFile file("nodes: [{name: a, port: 1}]\ngossip: {timeot_ms: 5}\n");
  const CliResult result = run_cli({"config", "check", file.path().string()});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with(file.path().string() +
                               ":2: gossip.timeot_ms: unknown key, did you mean 'timeout_ms'?"));
  CHECK(result.err.find('\n') == result.err.size() - 1);
  CHECK(run_cli({"config", "check", "/nonexistent.yaml"}).exit_code == 2);
  CHECK(run_cli({"config", "nodes", "/nonexistent.yaml"}).exit_code == 2);
}

TEST_CASE("config check refuses a folder as log.file") {
  const ScratchFile file("nodes: [{name: w1, port: 24000}]\nlog: {file: /tmp}\n");
  const CliResult result = run_cli({"config", "check", file.path().string()});
  CHECK(result.exit_code == 2);
  CHECK(result.err == file.path().string() +
                          ":2: log.file: '/tmp' is a directory; accepted: a file that can be "
                          "written, or \"\" for stderr\n");
  const ScratchFile slash("nodes: [{name: w1, port: 24000}]\nlog: {file: no/such/}\n");
  CHECK(run_cli({"config", "check", slash.path().string()}).exit_code == 2);
}

TEST_CASE("config check says what leaves the pair ledger without effect") {
  const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
  const auto said = [&](const std::string& rest) {
    const ScratchFile file(nodes + rest);
    const CliResult result = run_cli({"config", "check", file.path().string()});
    CHECK(result.exit_code == 0);
    const std::string begin =
        "note: " + file.path().string() + ": gossip.ledger has no effect with ";
    if (!result.err.starts_with(begin)) return result.err.substr(0, 3);
    return result.err.substr(begin.size(), result.err.find(", so ") - begin.size());
  };
  CHECK(said("gossip: {blend: lerp}\n") == "gossip.blend: lerp");
  CHECK(said("interpolation: {method: clock}\n") == "interpolation.method: clock");
  CHECK(said("interpolation: {method: constant, divergence_threshold: 0.3}\n") ==
        "interpolation.divergence_threshold");
  CHECK(said("interpolation: {method: constant, value: 0.003}\n") == "a factor below 1/256");
  CHECK(said("interpolation: {method: constant, value: 0.004}\n") == "ok:");
  CHECK(said("interpolation: {method: constant}\n") == "ok:");
  CHECK(said("gossip: {blend: lerp, ledger: false}\n") == "ok:");
  CHECK(said("backend: kvstore\nkvstore: {servers: [{name: s1, port: 24001}]}\n"
             "gossip: {blend: lerp}\n") == "ok:");
}

TEST_CASE("config check says what makes a file one of the original's form") {
  const auto said = [](const std::string& content) {
    const ScratchFile file(content);
    const CliResult result = run_cli({"config", "check", file.path().string()});
    CHECK(result.exit_code == 0);
    const std::string begin =
        "note: " + file.path().string() + ": of the form of the original dpwa, as ";
    if (!result.err.starts_with(begin)) return result.err.substr(0, 3);
    CHECK(test::has(result.err, ": gossip.ledger has no effect with gossip.blend: lerp"));
    return result.err.substr(begin.size(), result.err.find(". So ") - begin.size());
  };
  const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
  CHECK(said(nodes + "interpolation: constant\n") ==
        "interpolation is a name; {method: NAME} is of the own form");
  CHECK(said(nodes + "timeout_ms: 200\n") == "timeout_ms stands at the top level");
  CHECK(said("- nodes: [{name: w1, port: 24000}]\n- interpolation: clock\n") == "it is a list");
  CHECK(said(nodes + "interpolation: {method: constant}\n") == "ok:");
}

TEST_CASE("config check warns of servers that the back end does not use") {
  const std::string rest =
      "nodes: [{name: w1, port: 24000}]\nkvstore: {servers: [{name: s1, port: 24001}]}\n";
  const ScratchFile file(rest);
  const CliResult result = run_cli({"config", "check", file.path().string()});
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with("warning: " + file.path().string() +
                               ": kvstore.servers lists 1 server, which backend gossip does not "
                               "use; backend: kvstore does\nok: "));
  const ScratchFile used("backend: kvstore\n" + rest);
  CHECK(run_cli({"config", "check", used.path().string()}).err.starts_with("ok: "));
}

TEST_CASE("config check warns where the file has fewer nodes than gossip.min_nodes") {
  const std::string nodes = "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\n";
  const auto said = [&](const std::string& rest) {
    const ScratchFile file(nodes + rest);
    const CliResult result = run_cli({"config", "check", file.path().string()});
    CHECK(result.exit_code == 0);
    const auto begin = std::string("warning: ").size() + file.path().string().size();
    return result.err.starts_with("warning: ")
               ? result.err.substr(begin, result.err.find('\n') - begin)
               : result.err.substr(0, 4);
  };
  CHECK(said("gossip: {min_nodes: 2}\n") == "ok: ");
  CHECK(
      said("gossip: {min_nodes: 3}\n") ==
      ": gossip.min_nodes requires 3, and the file has 2 nodes, so a run fails unless others join");
  CHECK(said("backend: null\ngossip: {min_nodes: 3}\n") ==
        ": gossip.min_nodes requires 3, and the file has 2 nodes, which dpwa-train refuses");
}

TEST_CASE("config check says that engine mpi is for processes of mpirun") {
  const ScratchFile file(
      "backend: collective\ncollective: {engine: mpi}\n"
      "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\n");
  const CliResult result = run_cli({"config", "check", file.path().string()});
  if (result.exit_code != 0) return;  // this build has no MPI
  CHECK(result.err.starts_with("note: " + file.path().string() +
                               ": collective.engine: mpi is for processes that mpirun starts, as "
                               "in mpirun -np 2 PROGRAM\nok: "));
}

TEST_CASE("config check warns of cores that this machine does not have") {
  const std::string here = std::to_string(usable_processors().front());
  const auto check = [](const std::string& host, const std::string& cores) {
    const ScratchFile file("backend: kvstore\nnodes: [{name: w1, host: " + host +
                           ", port: 24000, cores: [" + cores +
                           "]}]\nsecurity: {mode: insecure}\n"
                           "kvstore: {servers: [{name: s1, host: " +
                           host + ", port: 24001, cores: [" + cores + "]}]}\n");
    CliResult result = run_cli({"config", "check", file.path().string()});
    CHECK(result.exit_code == 0);
    const std::string path = file.path().string();
    for (auto at = result.err.find(path); at != std::string::npos; at = result.err.find(path))
      result.err.replace(at, path.size(), "c");
    return result.err;
  };
  const std::string words = " cannot be used on this machine";
  const std::string unpinned = words + ", so scripts/run.sh does not pin it\n";
  CHECK(check("127.0.0.1", "9998, 9999")
            .starts_with("warning: c: w1: cores 9998, 9999" + unpinned +
                         "warning: c: s1: cores 9998, 9999" + unpinned + "ok: "));
  CHECK(
      check("127.0.0.1", here + ", 9999").starts_with("warning: c: w1: cores 9999" + words + "\n"));
  CHECK(check("127.0.0.1", here).starts_with("ok: "));
  CHECK(check("203.0.113.7", "9999").starts_with("ok: "));
}

TEST_CASE("a node process is refused where no trainer would attach to it") {
  const auto error = [](const std::string& more) {
    const ScratchFile file("nodes: [{name: w1, port: 24000}]\n" + more);
    const CliResult result = run_cli({"node", "--config", file.path().string(), "--name", "w1"});
    CHECK(result.exit_code == 2);
    return result.err.substr(file.path().string().size());
  };
  CHECK(error("") ==
        ": gossip.daemon: is false, so no trainer would ever attach to a node process; accepted: "
        "gossip: {daemon: true}\n");
  CHECK(error("gossip: {daemon: true}\nbackend: null\n") ==
        ":3: backend: 'null' has no network, so no trainer would ever attach to a node process; "
        "accepted: gossip\n");
}

TEST_CASE("config nodes lists every node with its cores and whether it is local") {
  const ScratchFile file(three_nodes);
  const CliResult all = run_cli({"config", "nodes", file.path().string()});
  CHECK(all.exit_code == 0);
  CHECK(all.err.empty());
  CHECK(all.out ==
        "w1\t127.0.0.1\t24000\t0,1\tlocal\n"
        "w2\tlocalhost\t24001\t-\tlocal\n"
        "far\t203.0.113.7\t24000\t2\tremote\n");
  CHECK(run_cli({"config", "nodes", "--local", file.path().string()}).out ==
        "w1\t127.0.0.1\t24000\t0,1\tlocal\n"
        "w2\tlocalhost\t24001\t-\tlocal\n");
}

TEST_CASE("config nodes gives a script in one document what run.sh starts by") {
  const std::string text =
      "\xef\xbb\xbf"
      "backend: kvstore\nnodes: [{name: w1, port: 24000, cores: [0, 1]}]\n"
      "kvstore: {start_wait_ms: 7s, servers: [{name: s1, port: 24001}, {name: s2, host: "
      "203.0.113.7, port: 24001}]}\nsecurity: {mode: insecure}  # \u00e9\n";
  const ScratchFile file(text);
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"config", "nodes", file.path().string(), "--json"});
    const CliResult result = run_cli(more);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    return nlohmann::json::parse(result.out);
  };
  const auto all = ask({});
  CHECK(all["backend"] == "kvstore");
  CHECK(all["start_wait_ms"] == 7000);
  CHECK(all["processors"] == processor_count());
  CHECK(all["text"] == text.substr(3));
  CHECK(all["nodes"] == nlohmann::json::parse(R"([{"name": "w1", "host": "127.0.0.1",
      "port": 24000, "cores": [0, 1], "local": true}])"));
  CHECK(all["servers"].size() == 2);
  CHECK(all["servers"][1]["local"] == false);
  CHECK(ask({"--local"})["servers"].size() == 1);
}

TEST_CASE("config keys gives every key a line, and a row of the reference in Markdown") {
  const CliResult list = run_cli({"config", "keys"});
  const CliResult reference = run_cli({"config", "keys", "--markdown"});
  CHECK(list.exit_code == 0);
  CHECK(reference.exit_code == 0);
  for (const config::KeySection& section : config::key_table()) {
    for (const config::Key& key : section.keys) {
      CAPTURE(config::path_of(section, key));
      CHECK(test::has(list.out, "\n" + config::path_of(section, key) + " "));
      CHECK(test::has(reference.out, "\n| `" + key.name + "` | "));
    }
  }
  CHECK(std::regex_search(list.out, std::regex("\ngossip.timeout_ms +500 +yes ")));
  std::istringstream lines(list.out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
}
