#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include <ctime>
#include <fstream>
#include <initializer_list>
#include <string>

#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/document.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/original_form.h"
#include "dpwa/config/text.h"
#include "interpolation/registry.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

struct Case {
  std::string text;      // follows a first line with two good nodes
  std::string expected;  // after "FILE:"
};

const std::string good_nodes = "nodes: [{name: w1, port: 24000}, {name: w2, port: 24001}]\n";

void check_cases(std::initializer_list<Case> cases, const std::string& before = good_nodes) {
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK(error_of(before + one.text) == one.expected);
  }
}

// As error lines list them; from the table, so that a new key changes no test.
std::string keys_of(const char* section) {
  return config::joined(config::accepted_names(config::section_at(section)));
}

double seconds_of(void (*work)(const std::string&), const std::string& text) {
  timespec before{}, after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  work(text);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<double>(after.tv_sec - before.tv_sec) +
         static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("a value of the wrong type names line, key and what is accepted") {
  check_cases({
      {"gossip:\n  timeout_ms: abc\n",
       "3: gossip.timeout_ms: 'abc' is not a duration; accepted: a number of ms above 0, or with a "
       "unit "
       "(500ms, 2s)"},
      {"gossip:\n  step_budget_ms: [1]\n",
       "3: gossip.step_budget_ms: a list is not a duration; accepted: a number of ms from 0, or "
       "with a unit "
       "(500ms, 2s)"},
      {"gossip: {pull_probability: often}\n",
       "2: gossip.pull_probability: 'often' is not a number; accepted: a number from 0 to 1"},
      {"gossip: {final_average: perhaps}\n",
       "2: gossip.final_average: 'perhaps' is not true or false; accepted: true, false"},
      {"gossip: {blend: {a: 1}}\n", "2: gossip.blend: a map is not text; accepted: delta, lerp"},
      {"gossip: fast\n", "2: gossip: 'fast' is not a map; accepted: a map"},
      {"gossip:\n  timeout_ms:\n",
       "3: gossip.timeout_ms: no value; accepted: a number of ms above 0, or with a unit (500ms, "
       "2s)"},
      {"backend:\n", "2: backend: no value; accepted: " + available_backends()},
      {"collective: {bucket_bytes: big}\n",
       "2: collective.bucket_bytes: 'big' is not a size; accepted: a size of at most 1GiB"},
      {"transport: {max_connections: 1.5}\n",
       "2: transport.max_connections: '1.5' is not a count; accepted: a whole number from 1 to "
       "65535"},
      {"log: {file: \"a\\x7f\"}\n",
       "2: log.file: 'a\\x7f' is not a path without control characters; accepted: a path, or \"\" "
       "for stderr"},
      {"cluster: a/b\n",
       "2: cluster: 'a/b' is not a name; accepted: 1 to 64 letters, digits, '.', '_' or '-', not "
       "starting "
       "with '.' or '-'"},
      {"interpolation: [constant]\n",
       "2: interpolation: a list is not a map; accepted: a method name or a map with 'method'"},
      {"collective: {engine: mpi, on_lost_rank: shrink}\n",
       "2: collective.on_lost_rank: engine mpi cannot continue without a rank; accepted: stop, or "
       "engine dpwa"},
      {"security: insecure\n",
       "2: security: 'insecure' is not a map; accepted: {mode: insecure | psk | mtls}"},
  });
}

TEST_CASE("a value out of range names line, key and the range") {
  check_cases({
      {"gossip: {pull_probability: 1.5}\n",
       "2: gossip.pull_probability: '1.5' is out of range; accepted: a number from 0 to 1"},
      {"gossip: {timeout_ms: 0}\n",
       "2: gossip.timeout_ms: '0' is out of range; accepted: a number of ms above 0, or with a "
       "unit (500ms, "
       "2s)"},
      {"gossip: {timeout_ms: 25h}\n",
       "2: gossip.timeout_ms: '25h' is out of range; accepted: at most 24h"},
      {"interpolation: {method: constant, value: 1.01}\n",
       "2: interpolation.value: '1.01' is out of range; accepted: a number from 0 to 1"},
  });
}

TEST_CASE("more nodes than a closed cluster has can never start") {
  check_cases({
      {"gossip:\n  membership: {join: closed}\n  min_nodes: 3\n",
       "4: gossip.min_nodes: 3 nodes, where the file has 2 and gossip.membership.join is closed; "
       "accepted: at most 2, or join: open"},
      {"gossip: {min_nodes: 2, membership: {join: closed}}\n", ""},
      {"gossip: {min_nodes: 3}\n", ""},  // others may join
  });
}

TEST_CASE("an unknown key or word suggests the nearest known one") {
  check_cases({
      {"gossip:\n  pul_probability: 1\n",
       "3: gossip.pul_probability: unknown key, did you mean 'pull_probability'? accepted: " +
           keys_of("gossip")},
      {"gosip: {}\n", "2: gosip: unknown key, did you mean 'gossip'? accepted: " + keys_of("") +
                          ", " + config::joined(config::original_keys())},
      {"log: {colour: red}\n", "2: log.colour: unknown key, accepted: " + keys_of("log")},
      {"gossip.timeout_ms: 4\n",
       "2: gossip.timeout_ms: one name; accepted: 'gossip:', and below it 'timeout_ms: ...'"},
      {"interpolation: {method: constant, valu: 1}\n",
       "2: interpolation.valu: unknown key, did you mean 'value'? accepted: " +
           keys_of("interpolation") + ", value"},
      {"interpolation: {method: clok}\n",
       "2: interpolation.method: 'clok' is unknown, did you mean 'clock'? accepted: " +
           config::joined(interpolation_registry().names())},
      {"backend: gosip\n",
       "2: backend: 'gosip' is unknown, did you mean 'gossip'? accepted: " + available_backends()},
      {"log: {level: loud}\n",
       "2: log.level: 'loud' is unknown, accepted: trace, debug, info, warn, error, off"},
  });
}

TEST_CASE("an error line lists keys, sections and second names") {
  const std::string keys = keys_of("gossip");
  CHECK(keys.starts_with("pull_probability, "));
  CHECK(keys.ends_with("min_nodes, firewall, membership, fetch_probability"));
}

TEST_CASE("a key in a section that belongs to another place names that place") {
  check_cases({
      {"transport: {timeout_ms: 5}\n",
       "2: transport.timeout_ms: unknown key, did you mean 'gossip.timeout_ms'? accepted: " +
           keys_of("transport")},
      {"seed: 5\n", "2: seed: unknown key, did you mean 'gossip.seed' or 'seeds'? accepted: " +
                        keys_of("") + ", " + config::joined(config::original_keys())},
      {"gossip:\n  distance: clip\n",
       "3: gossip.distance: unknown key, did you mean 'gossip.firewall.distance'? "
       "accepted: " +
           keys_of("gossip")},
      {"gossip: {firewall: {membership: {}}}\n",
       "2: gossip.firewall.membership: unknown key, did you mean 'gossip.membership'? accepted: " +
           keys_of("gossip.firewall")},
      {"log: {start_wait_ms: 5}\n",
       "2: log.start_wait_ms: unknown key, did you mean 'gossip.start_wait_ms' or "
       "'collective.start_wait_ms' or 'kvstore.start_wait_ms'? accepted: " +
           keys_of("log")},
      {"gossip: {cluster: x}\n",
       "2: gossip.cluster: unknown key, did you mean 'cluster' at the top level? accepted: " +
           keys_of("gossip")},
      {"security: {level: info}\n",
       "2: security.level: unknown key, did you mean 'log.level'? accepted: " +
           keys_of("security")},
      {"interpolation: {method: clock, blend: lerp}\n",
       "2: interpolation.blend: unknown key, did you mean 'gossip.blend'? accepted: " +
           keys_of("interpolation")},
  });
}

TEST_CASE("a key given twice is refused at its second line") {
  check_cases({
      {"cluster: a\ncluster: b\n", "3: cluster: given twice; accepted: one value"},
      {"gossip:\n  blend: delta\n  blend: lerp\n",
       "4: gossip.blend: given twice; accepted: one value"},
      {"gossip: {pull_probability: 1, fetch_probability: 1}\n",
       "2: gossip.fetch_probability: the same as 'pull_probability', which is given too; accepted: "
       "one of "
       "them"},
  });
}

TEST_CASE("names of the format that this version cannot serve are refused") {
  check_cases({
      {"security: {mode: insecur}\n",
       "2: security.mode: 'insecur' is unknown, did you mean 'insecure'? accepted: insecure, psk, "
       "mtls"},
      {"security: {}\n", "2: security.mode: missing; accepted: insecure, psk, mtls"},
      {"security: {mode: psk}\n", "2: security.key_file: missing; accepted: the path of a file"},
      {"security: {mode: psk, key_file: \"\"}\n",
       "2: security.key_file: '' is not a path; accepted: the path of a file; {name} in it stands "
       "for "
       "the node's name"},
      {"security: {mode: psk, key_file: k, ca: c}\n",
       "2: security.ca: no setting of mode psk; accepted: key_file"},
      {"security: {mode: mtls, ca: c, cert: d}\n",
       "2: security.key: missing; accepted: the path of a file"},
      {"security: {mode: mtls, key_file: k}\n",
       "2: security.key_file: no setting of mode mtls; accepted: ca, cert, key"},
      {"security: {mode: insecure, key_file: k}\n",
       "2: security.key_file: no setting of mode insecure"},
  });
}

TEST_CASE("bad entries of nodes are refused by their own line") {
  check_cases(
      {
          {"",
           " nodes: missing; accepted: a list of {name, host, port}; seeds; or none for dpwa-train "
           "under torchrun, srun, mpirun or Kubernetes, or with RANK and WORLD_SIZE, without "
           "--name"},
          {"nodes: []\n", "2: nodes: an empty list; accepted: at least one {name, host, port}"},
          {"nodes: 4\n", "2: nodes: '4' is not a list; accepted: a list of {name, host, port}"},
          {"nodes:\n  - w1\n", "3: nodes[0]: 'w1' is not a map; accepted: {name, host, port}"},
          {"nodes:\n  - {port: 1}\n", "3: nodes[0].name: missing; accepted: a name of its own"},
          {"nodes:\n  - {name: a}\n",
           "3: nodes[0].port: missing; accepted: a TCP port from 1 to 65535"},
          {"nodes:\n  - name: a\n    port: 70000\n",
           "4: nodes[0].port: '70000' is out of range; accepted: a whole number from 1 to 65535"},
          {"nodes:\n  - {name: a, port: http}\n",
           "3: nodes[0].port: 'http' is not a TCP port; accepted: a whole number from 1 to 65535"},
          {"nodes:\n  - {name: ../a, port: 1}\n",
           "3: nodes[0].name: '../a' is not a name; accepted: 1 to 64 letters, digits, '.', '_' or "
           "'-', not "
           "starting with '.' or '-'"},
          {"nodes:\n  - {name: a, port: 1, cores: 0}\n",
           "3: nodes[0].cores: '0' is not a list; accepted: a list of processor numbers such as "
           "[0, 1]"},
          {"nodes:\n  - {name: a, port: 1, cores: [0, -1]}\n",
           "3: nodes[0].cores[1]: '-1' is out of range; accepted: a whole number from 0 to 65535"},
          {"nodes:\n  - {name: a, port: 1, cores: [1, 1]}\n",
           "3: nodes[0].cores[1]: processor 1 is given twice; accepted: each once"},
          {"nodes:\n  - {name: a, port: 1, hots: b}\n",
           "3: nodes[0].hots: unknown key, did you mean 'host'? accepted: name, host, port, bind, "
           "cores"},
          {"nodes:\n  - {name: a, port: 1}\n  - {name: b, port: 2}\n  - {name: a, port: 3}\n",
           "5: nodes[2].name: 'a' is already the name of nodes[0]; accepted: a name of its own"},
          {"nodes:\n  - {name: a, host: 0.0.0.0, port: 1}\n",
           "3: nodes[0].host: '0.0.0.0' is not an address that peers can dial; accepted: the "
           "address of the machine (and bind: 0.0.0.0 to listen everywhere)"},
          {"nodes:\n  - {name: a, host: 224.0.0.1, port: 1}\n",
           "3: nodes[0].host: '224.0.0.1' is a multicast or broadcast address; accepted: the "
           "address of one machine"},
          {"nodes:\n  - {name: a, host: \"\", port: 1}\n",
           "3: nodes[0].host: '' is not a host; accepted: an IP address or a host name"},
      },
      "cluster: x\n");
}

TEST_CASE("YAML faults and unreadable files are one line too") {
  CHECK(error_of(std::string(100000, '[')).find("YAML syntax: ") != std::string::npos);
  CHECK(error_of("") == " is empty; accepted: a map of settings, such as 'nodes' and 'backend'");
  CHECK(error_of("# nothing\n") ==
        " is empty; accepted: a map of settings, such as 'nodes' and 'backend'");
  CHECK(error_of("hello\n") ==
        "1: 'hello' is not a cluster file; accepted: a map of settings, such as 'nodes' and "
        "'backend'");
  CHECK(error_of(good_nodes + "---\na: 1\n") == "2: a second YAML document; accepted: one");
  CHECK(error_of(good_nodes + "? [a, b]\n: 1\n") ==
        "2: a key that is not text; accepted: plain keys");
  CHECK(error_of(std::string(config::max_file_bytes + 1, '#')) ==
        " is too large for a cluster file; accepted: at most 4 MiB");
  CHECK_THROWS_WITH_AS(load_cluster("/nonexistent/cluster.yaml"),
                       "/nonexistent/cluster.yaml: cannot be read: No such file or directory",
                       ConfigError);
  CHECK_THROWS_WITH_AS(load_cluster("/tmp"), "/tmp: is a directory; accepted: a cluster file",
                       ConfigError);
}

TEST_CASE("a document that begins with a comma ends in an error and not in a loop") {
  CHECK(error_of(", a\n---\n" + good_nodes) == "1: a second YAML document; accepted: one");
}

TEST_CASE("odd bytes in a value or a key never break the line of the message") {
  CHECK(error_of(good_nodes + "backend: \"a\\nb\"\n")
            .starts_with("2: backend: 'a\\x0ab' is unknown,"));
  CHECK(error_of(good_nodes + "\"a\\nb\": 1\n").find('\n') == std::string::npos);
  CHECK(error_of("a: \"\\\n\x01\"\n").find_first_of("\n\x01") == std::string::npos);
  CHECK(error_of(good_nodes + "backend: " + std::string(500, 'x') + "\n").size() < 200);
}

TEST_CASE("what a terminal hides or reorders is escaped in an error line") {
  CHECK(error_of(good_nodes + "backend: null\u202E\n")
            .starts_with("2: backend: 'null\\xe2\\x80\\xae' is unknown,"));
  CHECK(error_of(good_nodes + "gos\u200Bsip: 1\n")
            .starts_with("2: gos\\xe2\\x80\\x8bsip: unknown key, did you mean 'gossip'?"));
  CHECK(
      error_of(good_nodes + "\"a\\x9b31mb\": 1\n").starts_with("2: a\\xc2\\x9b31mb: unknown key,"));
  CHECK(error_of("nodes: [{name: a, port: 1, host: \"127.0.0.1\u2060\"}]\n") ==
        "1: nodes[0].host: '127.0.0.1\\xe2\\x81\\xa0' is not a host; accepted: an IP address or a "
        "host "
        "name");
  CHECK_THROWS_WITH_AS(load_cluster("/nonexistent/a\n\u202Eb"),
                       "/nonexistent/a\\x0a\\xe2\\x80\\xaeb: cannot be read: No such file or "
                       "directory",
                       ConfigError);
}

TEST_CASE("a value that is cut in an error line is cut between two characters") {
  const std::string long_name = std::string(59, 'x') + "\u20AC\u20AC";
  CHECK(error_of(good_nodes + "backend: " + long_name + "\n")
            .starts_with("2: backend: '" + std::string(59, 'x') + "...' is unknown,"));
}

TEST_CASE("a file of many unknown keys is refused in a time proportional to its length") {
  std::string text = good_nodes;
  for (int i = 0; i < 100'000; ++i) text += "k" + std::to_string(100'000 + i) + ": 1\n";
  const double parsing = seconds_of([](const std::string& file) { YAML::Load(file); }, text);
  const double all = seconds_of(
      [](const std::string& file) {
        CHECK_THROWS_AS(parse_cluster(file, "cluster.yaml"), ConfigError);
      },
      text);
  CAPTURE(parsing);
  CHECK(all < 8 * parsing);
}
