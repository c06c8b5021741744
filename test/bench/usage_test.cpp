#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "dpwa/base/version.h"

using namespace dpwa;

namespace {

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

Result run_bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "dpwa-bench");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = bench::run(static_cast<int>(argv.size()) - 1, argv.data(), out, err);
  return {exit_code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("version and help of the benchmark are results with exit code 0") {
  CHECK(run_bench({"--version"}).out == "dpwa-bench " + std::string(version()) + "\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"pull", "--help"},
                                             {"raw", "--help"},
                                             {"choice", "--help"},
                                             {"memory", "--help"},
                                             {"compare", "--help"}}) {
    const Result result = run_bench(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("Usage:") != std::string::npos);
    CHECK(result.err.empty());
  }
  CHECK(run_bench({"--help"}).out.find("step") != std::string::npos);
  CHECK(run_bench({"--help"}).out.find("collective") != std::string::npos);
  CHECK(run_bench({"--help"}).out.find("worker") == std::string::npos);
}

TEST_CASE("wrong usage of the benchmark is one line and exit code 2") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"fly"},
                                             {"pull", "--bytes", "3x"},
                                             {"pull", "--pairs", "0"},
                                             {"pull", "--all-pull", "1"},
                                             {"pull", "--pairs", "1", "--all-pull", "2"},
                                             {"pull", "--transport", "pigeon"},
                                             {"pull", "--checksum", "maybe"},
                                             {"pull", "--encoding", "fp7"},
                                             {"pull", "--security", "rot13"},
                                             {"pull", "--chunk-bytes", "5000"},
                                             {"raw", "--mode", "sideways"},
                                             {"raw", "--seconds", "-1"},
                                             {"memory", "--threads", "0"},
                                             {"compare", "/nowhere", "/no"}}) {
    const Result result = run_bench(arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find("dpwa-bench: ") != std::string::npos);
  }
}

TEST_CASE("a benchmark that does not fit into memory says so before it starts") {
  const Result result = run_bench({"raw", "--bytes", "4000000GB"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK(result.err.find("of memory") != std::string::npos);
}
