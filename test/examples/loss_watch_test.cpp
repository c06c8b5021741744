#include "examples/train/plan.h"
#include "examples/train/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;
using dpwa::test::has;

namespace {

// The steps at which a run with these losses is told that it learns nothing.
std::vector<int> told_at(int steps, const std::function<double(int)>& loss) {
  LossWatch watch(10, static_cast<std::uint64_t>(steps), "look");
  std::vector<int> told;
  for (int step = 1; step <= steps; ++step) {
    if (watch.see(loss(step))) told.push_back(step);
  }
  return told;
}

const double guess = std::log(10.0);

}  // namespace

TEST_CASE("a loss that stays at chance, or above it, is told once, at half of the run at most") {
  CHECK(told_at(260, [](int) { return guess; }) == std::vector<int>{130});
  CHECK(told_at(260, [](int) { return 1e6; }) == std::vector<int>{130});
  CHECK(told_at(100'000, [](int) { return guess; }) == std::vector<int>{500});
  CHECK(told_at(100, [](int) { return guess; }) == std::vector<int>{100});
}

TEST_CASE("a loss that falls back to chance is told") {
  const auto dies = [](int step) { return step <= 1000 ? 0.5 : 2.31; };
  CHECK(told_at(4000, dies) == std::vector<int>{1250});
}

TEST_CASE("a run that learns, that has just begun, or is too short to tell, is told nothing") {
  CHECK(told_at(1000, [](int step) { return step < 200 ? guess : 1.9; }).empty());
  CHECK(told_at(1000, [](int step) { return step % 2 == 0 ? 2.6 : 1.4; }).empty());
  CHECK(told_at(99, [](int) { return guess; }).empty());
}

TEST_CASE("the line of a loss at chance has both losses and where to look") {
  LossWatch watch(10, 1, "look at the labels");
  std::string line;
  for (int step = 0; step < 100; ++step) line += watch.see(2.31).value_or("");
  CHECK(line ==
        "the loss of the last 50 steps is 2.31, and 2.30 is that of guessing: nothing is learnt; "
        "look at the labels");
}

TEST_CASE("where to look is the rate of all workers together where each push is an update") {
  TrainOptions options;
  options.lr = 0.03;
  options.lr_given = true;
  Config config;
  config.nodes.resize(12);
  CHECK(where_to_look(options, config) ==
        "--lr 0.03: try a smaller one, and look at the data and its labels");
  config.backend = Backend::kvstore;
  CHECK(has(where_to_look(options, config), "try a smaller one"));
  config.kvstore.type = KvstoreType::dist_async;
  CHECK(where_to_look(options, config) ==
        "--lr 0.03: with kvstore.type dist_async each of the 12 workers makes whole updates of its "
        "own; try 0.0025");
  config.nodes.resize(7);
  CHECK(where_to_look(options, config).ends_with("; try 0.0043"));
  options.lr_given = false;  // it is divided already
  CHECK(has(where_to_look(options, config), "try a smaller one"));
}
