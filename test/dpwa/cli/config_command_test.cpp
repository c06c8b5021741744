#include <doctest/doctest.h>

#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa::test;

namespace {

const char* three_nodes = R"(cluster: demo
nodes:
  - {name: w1, host: 127.0.0.1, port: 45000, cores: [0, 1]}
  - {name: w2, host: localhost, port: 45001}
  - {name: far, host: 203.0.113.7, port: 45000, cores: [2]}
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

TEST_CASE("config check as a node applies the environment") {
  const ScratchFile file(three_nodes);
  const ScopedVariable port("DPWA_PORT", "46000");
  const CliResult result = run_cli({"config", "check", file.path().string(), "--name", "w2"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.ends_with("; w2 listens on localhost port 46000\n"));
  CHECK(result.out.find("port: 46000") != std::string::npos);
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

TEST_CASE("config nodes lists every node with its cores and whether it is local") {
  const ScratchFile file(three_nodes);
  const CliResult all = run_cli({"config", "nodes", file.path().string()});
  CHECK(all.exit_code == 0);
  CHECK(all.err.empty());
  CHECK(all.out ==
        "w1\t127.0.0.1\t45000\t0,1\tlocal\n"
        "w2\tlocalhost\t45001\t-\tlocal\n"
        "far\t203.0.113.7\t45000\t2\tremote\n");
  CHECK(run_cli({"config", "nodes", "--local", file.path().string()}).out ==
        "w1\t127.0.0.1\t45000\t0,1\tlocal\n"
        "w2\tlocalhost\t45001\t-\tlocal\n");
}
