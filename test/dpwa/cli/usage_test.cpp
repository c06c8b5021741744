#include <doctest/doctest.h>

#include "dpwa/base/version.h"
#include "dpwa/config/backends.h"
#include "test/dpwa/cli/run_cli.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE("the version and the help are results with exit code 0") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--version"}, {"status", "--version"}, {"config", "check", "--version"}}) {
    CAPTURE(arguments.size());
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.out ==
          "dpwa " + std::string(version()) + " (back ends: " + available_backends() + ")\n");
    CHECK(result.err.empty());
  }
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"init", "--help"}, {"config", "--help"}, {"config", "check", "--help"}}) {
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("Usage:") != std::string::npos);
    CHECK(result.err.empty());
  }
}

TEST_CASE("wrong usage ends with exit code 2 and nothing on standard output") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"config"},
                                             {"confg"},
                                             {"--nonsense"},
                                             {"config", "check"},
                                             {"config", "check", "a.yaml", "b.yaml"},
                                             {"config", "nodes"},
                                             {"init", "--nodes", "0"},
                                             {"init", "--nodes", "many"},
                                             {"init", "--nodes", "-3"},
                                             {"init", "--port", "65536"},
                                             {"init", "--port"}}) {
    CAPTURE(arguments.size());
    const CliResult result = run_cli(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.ends_with(" --help)\n"));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}

TEST_CASE("unknown options are named in the order given, each with the nearest one") {
  CHECK(run_cli({"status", "--cofig", "a.yaml"}).err ==
        "dpwa: unknown option '--cofig', did you mean '--config'? (see dpwa status --help)\n");
  CHECK(run_cli({"init", "--prt=5", "--node", "3", "--zzz", "1", "-q"}).err ==
        "dpwa: unknown options '--prt', did you mean '--port'?; '--node', did you mean '--nodes'?; "
        "'--zzz'; '-q' (see dpwa init --help)\n");
  // What is missing as well comes from the same slip, or can be said next time.
  CHECK(run_cli({"node", "--confg", "a.yaml"}).err ==
        "dpwa: unknown option '--confg', did you mean '--config'? (see dpwa node --help)\n");
  CHECK(run_cli({"--nonsense"}).err == "dpwa: unknown option '--nonsense' (see dpwa --help)\n");
  CHECK(run_cli({"--nonsense", "status", "a.yaml"}).err ==
        "dpwa: unknown option '--nonsense' (see dpwa --help)\n");
  CHECK(run_cli({"config", "check", "a.yaml", "b.yaml", "c.yaml"}).err ==
        "dpwa: unexpected arguments 'b.yaml', 'c.yaml' (see dpwa config check --help)\n");
}

TEST_CASE("a missing argument is named as a user types it") {
  CHECK(run_cli({"status"}).err ==
        "dpwa: FILE is missing; accepted: dpwa status FILE (see dpwa status --help)\n");
  CHECK(run_cli({"status", "--name", "w1"}).err ==
        "dpwa: FILE is missing; accepted: dpwa status FILE (see dpwa status --help)\n");
  CHECK(run_cli({"config", "check"}).err ==
        "dpwa: FILE is missing; accepted: dpwa config check FILE (see dpwa config check --help)\n");
  CHECK(run_cli({"node"}).err ==
        "dpwa: --config is missing; accepted: dpwa node --config FILE (see dpwa node --help)\n");
}

TEST_CASE("an option given more often than once is named with how often it may be given") {
  CHECK(run_cli({"init", "--port", "1", "--port", "2", "--port", "3"}).err ==
        "dpwa: --port is given 3 times; accepted: once (see dpwa init --help)\n");
  CHECK(run_cli({"status", "a.yaml", "--config", "b.yaml"}).err ==
        "dpwa: FILE or --config is given 2 times; accepted: once (see dpwa status --help)\n");
  CHECK(run_cli({"keygen", "-o", "a", "--output", "b"}).err ==
        "dpwa: --output is given 2 times; accepted: once (see dpwa keygen --help)\n");
}

TEST_CASE("an unknown subcommand suggests the nearest one") {
  CHECK(run_cli({"confg"}).err.starts_with(
      "dpwa: unknown subcommand 'confg', did you mean 'config'?"));
  CHECK(run_cli({"config", "chek", "a.yaml"}).err ==
        "dpwa: unknown subcommand 'chek', did you mean 'check'? accepted: check, keys, nodes "
        "(see dpwa config --help)\n");
}
