#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/members/group_members.h"

namespace dpwa::world::testing {

// The state of a model, from which can be read how it came about.
struct Model {
  std::uint64_t weights = 0;
  std::uint64_t optimizer = 0;
  std::set<std::uint64_t> gradients;   // in its sums
  std::vector<std::uint64_t> history;  // the weights after each step
};

// What the processes of a World do with their models, checked as they do it.
class StepChecks {
 public:
  // One view of a number.
  void decided(const members::View& view);
  // One group of a name has the same members everywhere.
  void forms(std::uint64_t group, const members::GroupMembers& members);
  // All operations of one step sum the same gradients, one of each member.
  void sums(const std::vector<std::vector<std::uint64_t>>& operations, std::size_t members);
  // A step is made: all members of a group have equal weights and optimizers after it, and no
  // gradient is in two sums.
  void steps(std::uint64_t group, const Model& before, const std::vector<std::uint64_t>& gradients,
             const Model& after);
  // Members of the last group enter the next one with equal states.
  void enters(const Model& own, const Model& source);
  // One takes over a state, after so many steps of its own in a run that goes on. No more than its
  // last step is lost, and none if it was a member.
  void takes_over(const Model& own, bool was_member, std::uint64_t made, const Model& source);
  void fail(const std::string& problem);

  const std::vector<std::string>& problems() const { return problems_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t taken_over() const { return taken_over_; }
  std::uint64_t discarded() const { return discarded_; }
  void note_discarded() { ++discarded_; }
  void note_repeated() { ++repeated_; }
  void note_ended() { ++ended_; }
  std::uint64_t repeated() const { return repeated_; }
  std::uint64_t ended() const { return ended_; }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> views_;  // by run before, number
  std::map<std::uint64_t, members::GroupMembers> groups_;
  std::map<std::pair<std::uint64_t, std::size_t>, std::pair<std::uint64_t, std::uint64_t>> states_;
  std::uint64_t steps_ = 0;
  std::uint64_t taken_over_ = 0;
  std::uint64_t discarded_ = 0;
  std::uint64_t repeated_ = 0;
  std::uint64_t ended_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace dpwa::world::testing
