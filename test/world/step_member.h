#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/members/group_entries.h"
#include "dpwa/members/group_members.h"
#include "dpwa/members/held_state.h"
#include "test/world/flow.h"
#include "test/world/group_process.h"
#include "test/world/step_checks.h"

namespace dpwa::world::testing {

struct StepOptions {
  std::vector<std::string> names;
  Duration patience = std::chrono::milliseconds(100);
  Duration compute = std::chrono::milliseconds(30);  // of a step
  std::size_t buckets = 3;                           // of the gradients of a step
  bool keeps_checkpoints = false;
};

// Where in a step a process may fall: kinds of a Trap, beyond those of messages.
enum class Moment : std::uint8_t {
  gives,       // its part of a bucket
  has,         // all of a bucket
  has_all,     // of the step, and has not decided whether it counts
  counts,      // the step does, and its optimizer has not made it
  made,        // its optimizer has
  tells,       // its state to the others of a new group
  takes,       // the weights of another
  compares,    // optimizers
  hands_over,  // an optimizer's state
  comes,       // to a group that forms
};
inline constexpr std::size_t first_moment = 32;
inline constexpr std::size_t moments = 10;

// One process that trains as backend collective does: the flow of CollectiveAdapter, Starter and
// GroupFormer, with the decisions of production, on a model of a few numbers. A step has an
// operation for each bucket and one for its message; each member has the results at another time.
class StepMember final : public GroupProcess {
 public:
  StepMember(Environment& environment, const StepOptions& options, StepChecks& checks,
             Traps& traps);

  std::uint64_t group() const { return group_ ? group_->id : 0; }  // that it steps in; 0: none
  std::uint64_t made() const { return made_; }                     // steps, of this process
  std::string state() const;                                       // in words

 private:
  // What one member gives to an operation of all.
  struct Part {
    std::vector<std::uint64_t> gradients{};
    std::int64_t number = 0;
    std::shared_ptr<const Model> model{};
  };
  // A group of processes that are connected, or connect.
  struct Group {
    std::uint64_t id = 0;
    members::GroupMembers membership;
    int rank = 0;
    bool newcomer = false;
    bool broken = false;
    TimePoint begun{};
    std::set<int> met;             // connected to these ranks
    std::uint64_t operations = 0;  // begun here
    std::map<std::uint64_t, std::map<int, Part>> parts;

    std::size_t size() const { return membership.members.size(); }
  };
  struct Broken {};  // thrown: the group can no longer be used
  struct Until {
    StepMember& member;
    std::function<bool()> condition;
    bool await_ready() { return condition(); }
    void await_suspend(std::coroutine_handle<> then) {
      member.condition_ = condition;
      member.waiter_ = then;
    }
    void await_resume() {}
  };

  // --- events
  void ticked() override;
  void decided(const members::View& view) override { checks_.decided(view); }
  void installed(const members::View& view) override;
  void heard(const members::ProcessId& from, const members::GroupMessage& message) override;
  void pumped() override;

  // --- groups, as GroupFormer has them
  void look_for_group();
  void drop_stale();
  void pursue(const members::GroupMembers& wanted);
  void begin_attempt(const members::GroupMembers& members, std::uint64_t id);
  void advance_attempt();
  void seek();
  Group* find(std::uint64_t id);
  void end_group(std::unique_ptr<Group>& group);
  void break_group(Group& group);
  template <class Action>
  void tell_rank(const Group& group, int rank, Action action);
  void take_greeting(std::uint64_t id, const std::string& from, int rank, bool answers);
  void refuse(std::uint64_t id, const std::string& to);
  void note_broken(std::uint64_t id);

  // --- operations of a group
  std::uint64_t give(Part part);  // returns its number
  void give_to(const Group& group, int rank, std::uint64_t operation);
  void take_part(std::uint64_t id, int rank, std::uint64_t operation, const Part& part);
  void ask_for_parts();
  void answer(std::uint64_t id, std::uint64_t nonce, const std::string& from, int rank,
              std::uint64_t operation);
  void watch();  // as RankWatch does
  // The parts of all members, or of the `root` alone, in the group in which it began.
  Flow<std::map<int, Part>> all_of(std::uint64_t operation, std::optional<int> root = {});

  // --- the training thread
  Until until(std::function<bool()> condition) { return {*this, std::move(condition)}; }
  Until pause(Duration time);
  Flow<> at(Moment moment);  // where it may fall
  Flow<> train();
  Flow<> first();
  Flow<> next();
  Flow<std::unique_ptr<Group>> formed_group();
  Flow<> enter(std::unique_ptr<Group> formed);
  Flow<> step();
  Flow<> end_exchange(std::vector<std::uint64_t> operations);
  Flow<bool> exchange(std::vector<std::uint64_t> operations);
  std::vector<std::uint64_t> give_all();
  Flow<bool> complete(std::uint64_t step);
  void begin_at(std::uint64_t step);
  bool begin_in(std::uint64_t view);
  Flow<> compare();
  void make_step();
  Flow<> between_steps();
  Flow<> grow();
  Flow<> leave_run();
  Flow<> end_run();
  void drop_group();
  Part own_model() const;

  const StepOptions options_;
  StepChecks& checks_;

  // --- as GroupFormer, GroupSession
  members::GroupEntries entries_;
  std::unique_ptr<Group> attempt_;
  std::unique_ptr<Group> formed_;
  std::unique_ptr<Group> group_;
  std::unique_ptr<Group> left_;    // in order: others may still need what this one gave
  std::set<std::uint64_t> ended_;  // groups
  members::GroupMembers current_;  // the last one that it took
  bool seeks_ = false;
  bool is_minority_ = false;  // those that are left of its view, when it looked last
  std::uint64_t used_ = 0;    // the number of the last group that was tried
  TimePoint asked_{};         // for a view
  std::uint64_t step_view_ = 0;
  std::optional<std::uint64_t> begins_;

  // --- the training thread
  Flow<> training_;
  std::function<bool()> condition_;
  std::coroutine_handle<> waiter_;
  bool begun_ = false;
  bool runs_ = false;                                                    // or is about to go on
  std::optional<std::pair<std::uint64_t, std::optional<int>>> awaited_;  // operation and root
  TimePoint awaits_since_{};
  members::HeldState held_;
  Model model_;
  std::vector<std::uint64_t> gradients_;  // what .grad holds: own, or the sum
  std::uint64_t batches_ = 0;
  std::uint64_t made_ = 0;
  std::uint64_t made_since_taken_ = 0;  // in the same run
  std::uint64_t run_ = 0;               // the latest that it has seen; 0: none
  std::uint64_t next_group_ = 0;        // that it tells the others
  bool all_have_next_group_ = false;
  bool taken_over_ = false;
};

}  // namespace dpwa::world::testing
