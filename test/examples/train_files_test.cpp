#include <doctest/doctest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "test/examples/trainer_process.h"
#include "test/support/eventually.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

// The soft limit on core dumps of a process, as the system shows it.
std::string core_file_limit(pid_t process) {
  std::ifstream limits("/proc/" + std::to_string(process) + "/limits");
  const std::string name = "Max core file size";
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(name)) continue;
    const auto begin = line.find_first_not_of(' ', name.size());
    return line.substr(begin, line.find(' ', begin) - begin);
  }
  return "unknown";
}

}  // namespace

TEST_CASE_FIXTURE(Trainer, "a trainer leaves no core dump unless the environment asks for it") {
  const auto limit_of = [&](const std::string& run, const std::string& environment) {
    std::string line = "ulimit -S -c \"$(ulimit -H -c)\"; " + environment + " exec";
    for (const std::string& word : command(run, {"--steps", "10", "--step-time", "60000"}))
      line += " '" + word + "'";
    const auto process = start({"/bin/sh", "-c", line});
    const auto metrics = dir / run / "w1.metrics.jsonl";
    REQUIRE(test::eventually([&] { return std::filesystem::exists(metrics); }, until_it_trains));
    return core_file_limit(process.id());
  };
  CHECK(limit_of("without", "") == "0");
  rlimit hard{};
  REQUIRE(::getrlimit(RLIMIT_CORE, &hard) == 0);
  if (hard.rlim_max > 0) CHECK(limit_of("with", "DPWA_CORE_DUMPS=1") != "0");
  CHECK(start({"/usr/bin/env", "DPWA_CORE_DUMPS=yes", DPWA_TRAIN, "--config",
               (dir / "cluster.yaml").string(), "--name", "w1", "--data", "synthetic"})
            .wait() == 2);
  CHECK(said("DPWA_CORE_DUMPS: 'yes' is not accepted; accepted: 0, 1"));
}

TEST_CASE_FIXTURE(Trainer,
                  "metrics and a result that cannot be written give exit code 1 at the end") {
  std::filesystem::create_directories(dir / "run/w1.result.json/in the way");
  std::filesystem::create_symlink("/dev/full", dir / "run/w1.metrics.jsonl");
  CHECK(train("run", {"--steps", "5"}) == 1);
  INFO(output());
  CHECK(said("w1.metrics.jsonl: No space left on device; its lines wait in memory"));
  CHECK(said("finished step 5"));
  CHECK(said("6 lines could not be written"));
  CHECK(count_of(output(), "no result written: ") == 1);
}

TEST_CASE_FIXTURE(Trainer, "--save that cannot write is refused at the start, later it is exit 1") {
  test::write_text(dir / "file", "");
  std::filesystem::create_directory(dir / "folder");
  for (const char* path : {"file/m.safetensors", "folder"}) {
    CHECK(train("run", {"--steps", "3", "--save", (dir / path).string()}) == 2);
    CHECK(said("dpwa-train: --save: '" + (dir / path).string() + "' cannot be written: "));
    CHECK_FALSE(said("training on"));
  }
  std::string line = "ulimit -f 64; exec";
  for (const std::string& word :
       command("run", {"--steps", "3", "--save", (dir / "m.safetensors").string(), "--checkpoint",
                       (dir / "points").string()}))
    line += " '" + word + "'";
  CHECK(start({"/bin/sh", "-c", line}).wait() == 1);
  INFO(output());
  CHECK(said("no checkpoint written: "));
  CHECK(said("no model written: "));
  CHECK(said("File too large"));
  CHECK(said("finished step 3"));
  CHECK_FALSE(std::filesystem::exists(dir / "m.safetensors"));
}

TEST_CASE_FIXTURE(Trainer, "two devices of the CPU train what one does, and evaluate on threads") {
  REQUIRE_MESSAGE(train("one", {"--steps", "40", "--quiet"}) == 0, output());
  REQUIRE_MESSAGE(train("two", {"--steps", "40", "--quiet", "--devices", "cpu:2",
                                "--evaluate-threads", "2"}) == 0,
                  output());
  const auto one = losses("one"), two = losses("two");
  REQUIRE(two.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) CHECK(two[i] == doctest::Approx(one[i]).epsilon(1e-4));
  CHECK(result("two")["samples"] == 40 * 32);
  CHECK(result("two")["test_loss"].get<double>() ==
        doctest::Approx(result("one")["test_loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE_FIXTURE(Trainer, "--find-batch prints what steps took and a size, and trains nothing") {
  REQUIRE_MESSAGE(
      train("found", {"--find-batch", "--model", "cnn", "--memory-budget", "2000"}) == 0, output());
  CHECK(said("batch      peak memory   fits\n       1 "));
  CHECK(said(", of a budget of 2000.0 MiB\nlargest batch that fits: "));
  const std::string text = output();
  const auto number_after = [&](const std::string& words) {
    return std::stoull(text.substr(text.find(words) + words.size()));
  };
  const auto largest = number_after("largest batch that fits: ");
  CHECK(largest > 100);
  CHECK(number_after("--batch-size ") == largest - (largest + 9) / 10);
  CHECK_FALSE(std::filesystem::exists(dir / "found"));

  CHECK(train("none", {"--find-batch", "--memory-budget", "1"}) == 1);
  CHECK(said("dpwa-train: --find-batch: not even a batch of one sample fits\n"));
}
