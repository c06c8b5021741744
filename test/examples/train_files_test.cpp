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

TEST_CASE_FIXTURE(Trainer, "a checkpoint directory that cannot be used is refused at the start") {
  test::write_text(dir / "file", "");
  for (const char* path : {"file", "file/checkpoints"}) {
    CHECK(train("run", {"--steps", "5", "--checkpoint", (dir / path).string()}) == 2);
    INFO(output());
    CHECK(said("--checkpoint: '" + (dir / path).string() + "' "));
    CHECK_FALSE(said("training on"));
  }
  const Arguments resume{"--steps", "5", "--resume", "--checkpoint", (dir / "none").string()};
  CHECK(train("run", resume) == 2);
  CHECK(said("--resume: '" + (dir / "none").string() + "' does not exist"));
  CHECK_FALSE(std::filesystem::exists(dir / "none"));
  std::filesystem::create_directory(dir / "none");
  CHECK(train("run", resume) == 0);
  CHECK(said("no checkpoint in "));
}

TEST_CASE_FIXTURE(Trainer,
                  "a checkpoint directory that is lost on the way costs checkpoints alone") {
  const auto points = dir / "points";
  auto process = start(
      command("run", {"--steps", "800", "--step-time", "5", "--checkpoint", points.string()}));
  const auto metrics = dir / "run/w1.metrics.jsonl";
  REQUIRE(test::eventually([&] { return !test::read_text(metrics).empty(); }, until_it_trains));
  std::filesystem::remove(points);
  test::write_text(points, "in the way");
  CHECK(process.wait() == 1);
  INFO(output());
  CHECK(said("no checkpoint written: "));
  CHECK(said("finished step 800"));
  CHECK(result("run")["steps"] == 800);
}

TEST_CASE_FIXTURE(Trainer, "beyond the limit of file sizes a run says what was not written") {
  std::string line = "ulimit -f 64; exec";
  for (const std::string& word :
       command("run", {"--steps", "5", "--checkpoint", (dir / "points").string()}))
    line += " '" + word + "'";
  CHECK(start({"/bin/sh", "-c", line}).wait() == 1);
  INFO(output());
  CHECK(said("no checkpoint written: "));
  CHECK(said("File too large"));
  CHECK(said("finished step 5"));
}

TEST_CASE_FIXTURE(Trainer, "checkpoints are for their owner alone, other files follow the umask") {
  using std::filesystem::perms;
  std::filesystem::create_directory(dir / "points");
  std::filesystem::permissions(dir / "points", perms(0755));
  std::string line = "umask 002; exec";
  for (const std::string& word :
       command("run", {"--steps", "3", "--checkpoint", (dir / "points").string()}))
    line += " '" + word + "'";
  REQUIRE(start({"/bin/sh", "-c", line}).wait() == 0);
  const auto mode = [&](const char* path) {
    return std::filesystem::status(dir / path).permissions();
  };
  CHECK((mode("points/w1.3.ckpt") == perms(0600)));
  CHECK((mode("points") == perms(0755)));
  CHECK((mode("run/w1.metrics.jsonl") == perms(0664)));
  CHECK((mode("run/w1.result.json") == perms(0664)));
}

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
                  "metrics that cannot be written give exit code 1, at the end of training") {
  std::filesystem::create_directories(dir / "run");
  std::filesystem::create_symlink("/dev/full", dir / "run/w1.metrics.jsonl");
  CHECK(train("run", {"--steps", "5"}) == 1);
  INFO(output());
  CHECK(said("w1.metrics.jsonl: No space left on device; its lines wait in memory"));
  CHECK(said("finished step 5"));
  CHECK(said("6 lines could not be written"));
  CHECK(result("run")["steps"] == 5);
}

TEST_CASE_FIXTURE(Trainer, "a result that cannot be written is said once") {
  std::filesystem::create_directories(dir / "run/w1.result.json/in the way");
  CHECK(train("run", {"--steps", "5"}) == 1);
  INFO(output());
  CHECK(said("finished step 5"));
  const std::string text = output(), refused = "no result written: ";
  REQUIRE(said(refused));
  CHECK(text.find(refused) == text.rfind(refused));
}

TEST_CASE_FIXTURE(Trainer, "--save of a node without a network writes its model to FILE") {
  const auto file = dir / "models/m.safetensors";
  REQUIRE_MESSAGE(train("run", {"--steps", "3", "--save", file.string()}) == 0, output());
  CHECK(said("; own model in " + file.string() + "\n"));
  CHECK(test::read_text(file).size() > 101'770 * sizeof(float));
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
       command("run", {"--steps", "3", "--save", (dir / "m.safetensors").string()}))
    line += " '" + word + "'";
  CHECK(start({"/bin/sh", "-c", line}).wait() == 1);
  INFO(output());
  CHECK(said("no model written: "));
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

TEST_CASE_FIXTURE(Trainer, "devices that draw random numbers give the same run again") {
  for (const char* run : {"first", "second"})
    REQUIRE_MESSAGE(
        train(run, {"--steps", "8", "--quiet", "--model", "cnn", "--devices", "cpu:3"}) == 0,
        output());
  CHECK(losses("first").size() == 8);
  CHECK(losses("first") == losses("second"));
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

TEST_CASE_FIXTURE(Trainer, "devices that are not there are refused in one line") {
  CHECK(train("gpus", {"--steps", "1", "--devices", "cuda:100,cuda:101"}) == 2);
  CHECK(said("dpwa-train: --devices: 'cuda"));
}
