#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/quantity.h"
#include "dpwa/base/version.h"

using namespace dpwa;
using namespace dpwa::bench;

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
                                             {"kvstore", "--help"},
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
                                             {"kvstore", "--workers", "0"},
                                             {"kvstore", "--type", "dist_async"},
                                             {"kvstore", "--torch-python", "python3"},
                                             {"pull", "--pairs", "1", "--all-pull", "2"},
                                             {"pull", "--transport", "pigeon"},
                                             {"pull", "--checksum", "maybe"},
                                             {"pull", "--encoding", "fp7"},
                                             {"pull", "--security", "rot13"},
                                             {"pull", "--chunk-bytes", "5000"},
                                             {"raw", "--mode", "sideways"},
                                             {"pull", "--instruction-set", "avx9000"},
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

TEST_CASE("sizes have decimal and binary units") {
  CHECK(parse_size("200") == 200);
  CHECK(parse_size("10KB") == 10'000);
  CHECK(parse_size("100MB") == 100'000'000);
  CHECK(parse_size("64MiB") == 64u << 20);
  CHECK(parse_size("1.5GB") == 1'500'000'000);
}

TEST_CASE("a size that is nothing, negative, odd or without a number is none") {
  for (const char* text : {"", "0", "-1MB", "MB", "3x", "1.5", "100 MB more", "1e99"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("counts have decimal units") {
  CHECK(parse_count("500") == 500);
  CHECK(parse_count("100k") == 100'000);
  CHECK(parse_count("10M") == 10'000'000);
  CHECK(parse_count("1.5G") == 1'500'000'000);
}

TEST_CASE("a count that is nothing, negative or no whole number is none") {
  for (const char* text : {"", "0", "-1", "k", "0.5", "1.0001k", "10MB", "1e99"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_count(text));
  }
}

TEST_CASE("sizes and times are told in the unit that suits them") {
  CHECK(size_text(200) == "200 B");
  CHECK(size_text(10'000) == "10 KB");
  CHECK(size_text(100'000'000) == "100 MB");
  CHECK(size_text(1'500'000'000) == "1.5 GB");
  CHECK(time_text(21.86) == "21.86 us");
  CHECK(time_text(19700) == "19.7 ms");
  CHECK(time_text(2e6) == "2 s");
}
