#include <doctest/doctest.h>

#include <string>

#include "test/examples/trainer_process.h"

using namespace dpwa;
using namespace dpwa::test;

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
