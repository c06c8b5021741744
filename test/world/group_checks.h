#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/members/view.h"

namespace dpwa::world::testing {

// What all processes of a World say of what they did, checked as they say it.
class GroupChecks {
 public:
  // `enough`: with so many members a run begins. `one_chain`: no disk is lost, so no two views have
  // one number, whatever their runs.
  GroupChecks(std::size_t enough, bool one_chain) : enough_(enough), one_chain_(one_chain) {}

  // It is on a disk as installed.
  void decided(const members::View& view);
  void acts_in(const members::ProcessId& process, const members::View& view,
               std::uint64_t settings);
  // A voter of the view before is one of this view, and has completed so much.
  void stays(const members::Member& member, const members::Progress& progress);
  // An operation to which one has contributed in this view.
  void contributes(const members::Progress& done_before, std::uint64_t operation);
  void state(const members::View& view, std::uint64_t through, std::uint64_t digest);
  void completes(const members::View& view, std::uint64_t operation);
  // All members say that they have completed it: it may leave the group.
  void commit(const members::View& view, std::uint64_t operation, std::uint64_t result);
  void fail(const std::string& problem);

  const std::vector<std::string>& problems() const { return problems_; }
  std::uint64_t committed() const { return commits_; }

 private:
  const std::size_t enough_;
  const bool one_chain_;
  std::set<std::uint64_t> open_;                                            // digests of open views
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> views_;  // by run and number
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> states_;
  std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> results_;  // by run
  // By run and operation: the latest run at its first completion.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> completed_;
  std::map<std::uint64_t, std::size_t> runs_;  // in the order in which they began
  std::size_t latest_run_ = 0;                 // that committed
  std::uint64_t commits_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace dpwa::world::testing
