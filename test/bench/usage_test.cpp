#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/memory/plain_blend.h"
#include "bench/pull/pull_group.h"
#include "bench/quantity.h"
#include "bench/worker/group.h"
#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "dpwa/security/key_file.h"

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
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--version"}, {"pull", "--version"}})
    CHECK(run_bench(arguments).out == "dpwa-bench " + std::string(version()) + "\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"pull", "--help"},
                                             {"raw", "--help"},
                                             {"choice", "--help"},
                                             {"kvstore", "--help"},
                                             {"memory", "--help"}}) {
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
                                             {"memory", "--threads", "0"}}) {
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
  CHECK(rate_text(5.068) == "5.07 GB/s");
  CHECK(rate_text(0.00364) == "3.64 MB/s");
}

namespace {

std::vector<float> floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  fill_with_values(std::as_writable_bytes(std::span(values)), seed);
  return values;
}

}  // namespace

TEST_CASE("values are of either sign, from 1/16 to 1/8, and differ by seed") {
  const auto values = floats(1000, 1);
  for (const float value : values) {
    CHECK(std::abs(value) >= 0.0625F);
    CHECK(std::abs(value) < 0.125F);
  }
  CHECK(std::ranges::any_of(values, [](float value) { return value < 0; }));
  CHECK(std::ranges::any_of(values, [](float value) { return value > 0; }));
  CHECK(values != floats(1000, 2));
  CHECK(values == floats(1000, 1));
}

TEST_CASE("values of other dtypes have the same magnitudes") {
  std::vector<double> doubles(100);
  fill_with_values(std::as_writable_bytes(std::span(doubles)), 3, DType::float64);
  for (const double value : doubles) CHECK(std::abs(std::abs(value) - 0.09375) <= 0.03125);
  std::vector<std::uint16_t> halves(100);
  fill_with_values(std::as_writable_bytes(std::span(halves)), 3, DType::float16);
  for (const auto bits : halves) CHECK((bits & 0x7C00) == 0x2C00);  // 1/16 is 2^-4: 15 - 4 = 11
  fill_with_values(std::as_writable_bytes(std::span(halves)), 3, DType::bfloat16);
  for (const auto bits : halves) CHECK((bits & 0x7F80) == 0x3D80);  // 127 - 4 = 123
}

TEST_CASE("the loops by hand compute what they say") {
  std::vector<float> x = {1, 2, 3}, difference = {10, 20, 30}, copy(3), target(3);
  plain_blend(std::as_writable_bytes(std::span(target)), std::as_bytes(std::span(x)),
              std::as_bytes(std::span(difference)), 0.5F);
  CHECK(target == std::vector<float>{5.5F, 11, 16.5F});
  plain_delta(std::as_writable_bytes(std::span(x)), std::as_bytes(std::span(difference)), 0.5F);
  CHECK(x == std::vector<float>{6, 12, 18});
  plain_delta_and_copy(std::as_writable_bytes(std::span(x)), std::as_bytes(std::span(difference)),
                       1, std::as_writable_bytes(std::span(copy)));
  CHECK(x == std::vector<float>{16, 32, 48});
  CHECK(copy == x);
}

TEST_CASE("the settings of a benchmark reach the nodes") {
  NodeSettings settings;
  settings.checksum = false;
  settings.chunk_bytes = 1 << 20;
  const ClusterFile file(settings, {24001, 24002});
  CHECK(file.chunk_bytes() == 1 << 20);
  const Config config = load_config(file.path(), "w2");
  CHECK(config.nodes.size() == 2);
  CHECK(config.self_node().port == 24002);
  CHECK(config.transport.encoding == Codec::raw);
  CHECK_FALSE(config.transport.checksum);
  CHECK(config.security.mode == "insecure");
}

TEST_CASE("the file asks for the path that is to be measured") {
  NodeSettings settings;
  CHECK(cluster_file_text(settings, {1}).find("same_host: off") != std::string::npos);
  settings.transport = "same_host";
  CHECK(cluster_file_text(settings, {1}).find("same_host: auto") != std::string::npos);
  settings.security = "psk";
  settings.key_file = "k";
  CHECK(cluster_file_text(settings, {1}).find("mode: psk\n  key_file: \"k\"\n") !=
        std::string::npos);
}

TEST_CASE("psk without a key file gets a key for the length of the run") {
  NodeSettings settings;
  settings.security = "psk";
  std::string key_file;
  {
    const ClusterFile file(settings, {24001});
    key_file = load_config(file.path(), "w1").security.key_file;
    CHECK(read_key_file(key_file).has_value());
  }
  CHECK_FALSE(std::filesystem::exists(key_file));
}

TEST_CASE("settings that the loader refuses end in its words, without the file") {
  NodeSettings settings;
  settings.encoding = "fp7";
  try {
    const ClusterFile file(settings, {24001});
    FAIL("accepted");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()).starts_with("transport.encoding: 'fp7'"));
  }
}

TEST_CASE("the file is gone with its owner") {
  std::string path;
  {
    const ClusterFile file(NodeSettings{}, {24001});
    path = file.path();
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_CASE("of a pair the first pulls from the second, of all every one from any") {
  Topology topology;
  topology.pairs = 2;
  CHECK(topology.nodes() == 4);
  CHECK(topology.pulls(0));
  CHECK_FALSE(topology.pulls(1));
  CHECK(topology.partner(2) == 3);
  CHECK(topology.partner(3) == 2);
  topology.all_pull = 3;
  CHECK(topology.nodes() == 3);
  CHECK(topology.pulls(1));
  CHECK_FALSE(topology.partner(1));
}
