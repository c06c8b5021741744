// Groups on random schedules of faults: at most one ever goes on, what it commits stays, and all
// that can go on do.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/support/sanitized.h"
#include "test/world/group_member.h"
#include "test/world/schedule.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;
using members::ProcessId;
using members::View;
using members::ViewEngine;

struct Result {
  std::vector<std::string> problems;
  std::uint64_t events = 0;
  std::uint64_t committed = 0;
  std::uint64_t views = 0;
  bool blocked = false;
};

// The latest view that anybody knows, and whether its voters can be heard: living, or by what they
// kept on a disk that is there.
std::pair<View, bool> latest(World& world) {
  View view;
  for (std::size_t i = 0; i < world.machines(); ++i) {
    const auto* const member = static_cast<const GroupMember*>(world.program(i));
    if (member->engine().view().number > view.number) view = member->engine().view();
  }
  if (view.open()) return {view, true};
  std::set<ProcessId> voters;
  for (std::size_t i = 0; i < world.machines(); ++i) {
    const auto* const member = static_cast<const GroupMember*>(world.program(i));
    voters.insert(member->id());
    if (const std::any* kept = world.file(i, "votes")) {
      for (const auto& vote : std::any_cast<const members::Kept&>(*kept).votes)
        voters.insert(vote.owner);
    }
  }
  return {view, is_quorum(view, voters)};
}

Result play(const Schedule& schedule, std::uint64_t seed) {
  GroupChecks checks;
  GroupOptions options;
  for (std::size_t i = 0; i < schedule.machines; ++i)
    options.names.push_back("w" + std::to_string(i));
  options.patience = schedule.patience;
  options.spoils = schedule.spoils;
  World world(derive_seed(seed, {2}), {.jitter = schedule.jitter, .disk = schedule.disk});
  for (const std::string& name : options.names) {
    world.add_machine(name, [&](Environment& environment) {
      return std::make_unique<GroupMember>(environment, options, checks);
    });
  }
  std::vector<Fault> all;
  for (std::size_t i = 0; i < schedule.machines; ++i)
    all.push_back({schedule.starts[i], Fault::Kind::start, i, 0});
  all.insert(all.end(), schedule.faults.begin(), schedule.faults.end());
  std::ranges::stable_sort(all, {}, &Fault::at);
  Duration now{};
  for (const Fault& fault : all) {
    world.run(fault.at - now);
    now = fault.at;
    happen(fault, world);
  }
  calm_down(world);
  world.run(150 * options.patience);
  Result result;
  const auto [view, available] = latest(world);
  const std::uint64_t before = checks.committed();
  world.run(30 * options.patience);
  result.blocked = !available;
  for (std::size_t i = 0; i < schedule.machines && available; ++i) {
    const auto* const member = static_cast<const GroupMember*>(world.program(i));
    if (member->engine().standing() != ViewEngine::Standing::member)
      checks.fail(options.names[i] + " is no member at the end");
    if (member->view() != view) checks.fail(options.names[i] + " is in another view at the end");
  }
  if (available && checks.committed() == before) checks.fail("nothing goes on at the end");
  if (!available && !schedule.loses_disks) checks.fail("blocked, although every disk is there");
  if (!available && checks.committed() != before) checks.fail("goes on without a quorum");
  result.problems = checks.problems();
  result.events = world.events();
  result.committed = checks.committed();
  result.views = view.number;
  return result;
}

// Leaves out the faults without which it fails as well.
void shorten(Schedule& schedule, Result& result, std::uint64_t seed) {
  for (std::size_t i = 0; i < schedule.faults.size();) {
    Schedule shorter = schedule;
    shorter.faults.erase(shorter.faults.begin() + static_cast<std::ptrdiff_t>(i));
    Result again = play(shorter, seed);
    if (again.problems.empty()) {
      ++i;
    } else {
      schedule = std::move(shorter);
      result = std::move(again);
    }
  }
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// DPWA_WORLD_SEED and DPWA_WORLD_SEEDS: the first seed, and how many.
TEST_CASE("at most one group goes on, what it commits stays, and all that can go on do") {
  const std::uint64_t first = number_from("DPWA_WORLD_SEED", 1);
  const std::uint64_t count = number_from("DPWA_WORLD_SEEDS", test::sanitized ? 30 : 300);
  std::uint64_t events = 0;
  std::uint64_t views = 0;
  std::uint64_t blocked = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = first; seed < first + count && failed < 5; ++seed) {
    Schedule schedule = draw(seed);
    Result result = play(schedule, seed);
    events += result.events;
    views += result.views;
    blocked += result.blocked ? 1 : 0;
    if (result.problems.empty()) continue;
    ++failed;
    shorten(schedule, result, seed);
    std::string problems;
    for (const std::string& problem : result.problems) problems += "\n  " + problem;
    FAIL_CHECK("seed " << seed << ": " << problems << "\n" << words(schedule));
  }
  MESSAGE(events << " events, " << views << " views, " << blocked << " of " << count
                 << " runs without a quorum at the end");
}

TEST_CASE("the same seed gives the same run") {
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    const Result one = play(draw(seed), seed);
    const Result other = play(draw(seed), seed);
    CHECK(one.events == other.events);
    CHECK(one.committed == other.committed);
    CHECK(one.views == other.views);
  }
}

}  // namespace
}  // namespace dpwa::world::testing
