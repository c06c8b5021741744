#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/world/group_checks.h"
#include "test/world/group_process.h"

namespace dpwa::world::testing {

struct GroupOptions {
  std::vector<std::string> names;
  std::size_t minimum = 0;
  Duration patience = std::chrono::milliseconds(200);
  Duration compute = std::chrono::milliseconds(60);  // of a step
  bool spoils = false;  // a state that is transferred is wrong at times
  bool loses_disks = false;
  std::set<std::string> servers;  // none: all are equal
  std::string odd;                // the name whose settings differ
};

// One process of a data-parallel group: each step has several operations in flight, to each of
// which every member contributes a number that only it can have made. So a result says which
// contributions it has.
class GroupMember : public GroupProcess {
 public:
  static constexpr std::uint64_t operations_of_step = 3;

  GroupMember(Environment& environment, const GroupOptions& options, GroupChecks& checks,
              Traps& traps);

  std::uint64_t through() const { return steps_done_ * operations_of_step; }
  std::uint64_t state() const { return state_; }
  const std::map<std::uint64_t, std::uint64_t>& results() const { return results_; }

 private:
  struct Contribution {
    std::uint64_t view = 0;
    std::uint64_t operation = 0;
    std::uint64_t value = 0;
  };

  void ticked() override;
  void decided(const members::View& view) override { checks_.decided(view); }
  void installed(const members::View& view) override;
  void reset();
  void begin_step();
  void contribute(std::uint64_t operation);
  void take(const members::ProcessId& from, const Contribution& contribution);
  void try_complete(std::uint64_t operation);
  void finish(std::uint64_t operation, std::uint64_t result);
  void close_steps();
  void report();
  void take_report(const members::ProcessId& from, std::uint64_t view,
                   const members::Progress& done);
  void repair();
  void answer_fetch(const members::ProcessId& to, std::uint64_t operation);
  void take_result(std::uint64_t view, std::uint64_t operation, std::uint64_t result);
  void answer_state(const members::ProcessId& to);
  void take_state(const members::ProcessId& from, std::uint64_t view, std::uint64_t steps,
                  std::uint64_t state);
  bool is_member() const;

  const GroupOptions options_;
  GroupChecks& checks_;
  members::Progress done_before_;  // what one of its members had completed
  TimePoint moved_{};              // when it last completed an operation, or a view was installed

  bool has_state_ = false;
  std::optional<members::ProcessId> giver_;
  std::uint64_t steps_done_ = 0;
  std::uint64_t state_ = 0;
  bool computing_ = false;
  std::uint64_t life_ = 0;  // of the state: an older computation does not count
  std::map<std::uint64_t, std::uint64_t> inputs_;
  std::map<std::uint64_t, std::map<members::ProcessId, std::uint64_t>> received_;
  std::vector<std::pair<members::ProcessId, Contribution>> early_;
  std::map<std::uint64_t, std::uint64_t> results_;
  std::map<members::ProcessId, members::Progress> reported_;
  std::uint64_t committed_ = 0;
};

}  // namespace dpwa::world::testing
