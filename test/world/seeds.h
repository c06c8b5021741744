#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "test/world/schedule.h"

namespace dpwa::world::testing {

inline std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The seeds of a run: DPWA_WORLD_SEED is the first, DPWA_WORLD_SEEDS how many.
struct Seeds {
  explicit Seeds(std::uint64_t otherwise)
      : first(number_from("DPWA_WORLD_SEED", 1)),
        end(first + number_from("DPWA_WORLD_SEEDS", otherwise)) {}
  const std::uint64_t first;
  const std::uint64_t end;
};

// Leaves out the faults without which `play` finds problems as well, which it returns.
template <class Play>
std::vector<std::string> shorten(Schedule& schedule, std::vector<std::string> problems,
                                 const Play& play) {
  for (std::size_t i = 0; i < schedule.faults.size();) {
    Schedule shorter = schedule;
    shorter.faults.erase(shorter.faults.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<std::string> again = play(shorter);
    if (again.empty()) {
      ++i;
    } else {
      schedule = std::move(shorter);
      problems = std::move(again);
    }
  }
  return problems;
}

// Fails the test with these problems and the schedule, both of them shortened.
template <class Play>
void report(std::uint64_t seed, Schedule schedule, std::vector<std::string> problems,
            const Play& play) {
  std::string text;
  for (const std::string& problem : shorten(schedule, std::move(problems), play))
    text += "\n  " + problem;
  FAIL_CHECK("seed " << seed << ": " << text << "\n" << words(schedule));
}

}  // namespace dpwa::world::testing
