#include <doctest/doctest.h>

#include "dpwa/version.h"
#include "test/dpwa/cli/run_cli.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE("the version and the help are results with exit code 0") {
  const CliResult version_result = run_cli({"--version"});
  CHECK(version_result.exit_code == 0);
  CHECK(version_result.out == "dpwa " + std::string(version()) + "\n");
  CHECK(version_result.err.empty());
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
    CHECK(result.err.ends_with("(see dpwa --help)\n"));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
}

TEST_CASE("an unknown subcommand suggests the nearest one") {
  CHECK(run_cli({"confg"}).err.starts_with(
      "dpwa: unknown subcommand 'confg', did you mean 'config'?"));
  CHECK(run_cli({"config", "chek", "a.yaml"}).err ==
        "dpwa: unknown subcommand 'chek', did you mean 'check'? accepted: check, nodes (see dpwa "
        "--help)\n");
}
