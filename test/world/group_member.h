#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/members/group_engine.h"
#include "dpwa/world/world.h"
#include "test/world/group_checks.h"

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

// What happens to a process when it is about to send a message of one kind, or has just sent it.
struct Trap {
  enum class Does : std::uint8_t {
    ends,   // it, and another is started
    burns,  // and its disk
    stops,  // it: what it has not sent, it sends when it goes on
    hides,  // it from the others
  };
  std::size_t kind = 0;     // index in members::ViewMessage
  std::uint64_t after = 0;  // so many others of the kind
  bool sends = true;        // that message still goes out
  Does does = Does::ends;
  Duration back{};
};

using Traps = std::map<std::string, std::vector<Trap>>;  // by name: a later process inherits them

// The trap that a message of this kind springs, which is no longer there then; none: it passes.
std::optional<Trap> spring(std::vector<Trap>& traps, std::size_t kind, bool sent);

// One process of a data-parallel group: each step has several operations in flight, to each of
// which every member contributes a number that only it can have made. So a result says which
// contributions it has.
class GroupMember : public Program {
 public:
  static constexpr std::uint64_t operations_of_step = 3;

  GroupMember(Environment& environment, const GroupOptions& options, GroupChecks& checks,
              Traps& traps);

  // The next view is asked for, or is to be without it; then the process ends and another starts.
  void renew() {
    if (is_member()) views().renew();
  }
  void leave() { leaves_ = true; }
  bool leaves() const { return leaves_; }
  const members::ViewEngine& engine() const { return engine_->views(); }
  const members::View& view() const { return view_; }
  const members::ProcessId& id() const { return engine().self(); }
  std::uint64_t through() const { return steps_done_ * operations_of_step; }
  std::uint64_t state() const { return state_; }
  const std::map<std::uint64_t, std::uint64_t>& results() const { return results_; }

 private:
  struct Contribution {
    std::uint64_t view = 0;
    std::uint64_t operation = 0;
    std::uint64_t value = 0;
  };

  members::ViewEngine& views() { return engine_->views(); }
  Duration group_beat() const;
  void tick();
  void pump();
  // Returns false: the rest has to wait.
  bool act();
  void installed(const members::View& view);
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
  template <class Action>
  void tell(const std::string& to, Action action);

  // Returns whether the process is to do nothing more, or nothing until it wakes.
  bool falls(const members::GroupMessage& message, bool sent);

  std::vector<Trap>& traps_;
  bool halted_ = false;
  bool leaves_ = false;
  Environment& environment_;
  const GroupOptions options_;
  GroupChecks& checks_;
  std::optional<members::GroupEngine> engine_;
  std::deque<members::GroupEngine::Wishes> waiting_;  // for the disk
  bool waits_ = false;                                // for the disk, or stands still
  members::View view_;                                // that is acted upon
  members::Progress done_before_;                     // what one of its members had completed
  TimePoint moved_{};  // when it last completed an operation, or a view was installed

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
