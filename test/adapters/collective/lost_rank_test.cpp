#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "adapters/collective/engine/engine.h"
#include "test/adapters/collective/tested_engine.h"
#include "test/support/child_process.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Ranks are processes here, killed in the middle of their all-reduces.

using dpwa::test::ChildProcess;
using dpwa::test::eventually;
using dpwa::test::patience;

namespace {

double now_ms() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// When each word was told, by word.
std::map<std::string, double> times_of(const std::filesystem::path& file) {
  std::map<std::string, double> times;
  std::istringstream lines(dpwa::test::read_text(file));
  std::string line, word;
  double moment = 0;
  while (std::getline(lines, line)) {
    if (std::istringstream(line) >> word >> moment) times[word] = moment;
  }
  return times;
}

void survive(int size, const std::vector<int>& lost, int number, std::uint64_t seed) {
  const dpwa::test::TemporaryDirectory folder;
  const auto output = [&](int rank) { return folder / ("out." + std::to_string(rank)); };
  std::vector<ChildProcess> ranks;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::string> command{DPWA_COLLECTIVE_RANK, folder.path().string(),
                                     std::to_string(rank), std::to_string(size)};
    for (const int other : lost) command.push_back(std::to_string(other));
    ranks.emplace_back(command, output(rank));
  }
  REQUIRE(eventually([&] {
    for (int rank = 0; rank < size; ++rank) {
      if (times_of(output(rank)).count("formed") == 0) return false;
    }
    return true;
  }));
  // At a moment of its own in the all-reduces that have begun.
  std::mt19937_64 random(seed);
  std::this_thread::sleep_for(std::chrono::microseconds(20'000 + random() % 20'000));
  const double killed = now_ms();
  for (const int rank : lost) ranks[static_cast<std::size_t>(rank)].signal(number);
  const std::string engine = dpwa::collective::make_engine(dpwa::test::tested_engine()).name;
  double error_ms = 0, again_ms = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) != lost.end()) continue;
    CAPTURE(rank);
    const auto code = ranks[static_cast<std::size_t>(rank)].wait(patience);
    const auto text = dpwa::test::read_text(output(rank));
    CAPTURE(text);
    REQUIRE(code.has_value());
    CHECK(code.value() == 0);
    auto times = times_of(output(rank));
    REQUIRE(times.count("done") == 1);
    // In the all-reduce, or before the next one.
    const bool names_it =
        text.find("allreduce sum 'w' (engine " + engine + "): ") != std::string::npos ||
        text.find("waiting (engine " + engine + "): the group is broken") != std::string::npos;
    CHECK(names_it);
    error_ms = std::max(error_ms, times["failed"] - killed);
    again_ms = std::max(again_ms, times["again"] - killed);
  }
  MESSAGE("of ", size, " ranks killed ", lost.size(), ": last error after ", error_ms,
          " ms, the next group after ", again_ms, " ms");
}

}  // namespace

TEST_CASE("any one rank is killed, rank 0 too: the others get an error and form the next group") {
  for (int lost = 0; lost < 4; ++lost)
    survive(4, {lost}, SIGKILL, 100 + static_cast<unsigned>(lost));
}

TEST_CASE("two of six ranks are killed at once, rank 0 among them") {
  survive(6, {0, 3}, SIGKILL, 7);
}
