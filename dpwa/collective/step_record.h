#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/collective/step_tally.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::collective {

// The number of a group as the note of a step (Replica::set_note): 28 bits, of which it takes 24,
// because groups are numbered one after the other. 0: none.
constexpr std::uint32_t note_of_group(std::uint64_t number) {
  return static_cast<std::uint32_t>(number & ((1U << 24) - 1));
}

// The steps of a node: how far the one under way is, and what all members know since their last
// exchange. Pure; one owner.
class StepRecord {
 public:
  // The step under way: open, then exchanged; or the state after it was taken over from others.
  bool is_open() const { return stage_ == Stage::open; }
  bool is_taken_over() const { return stage_ == Stage::taken_over; }
  void take_over() { stage_ = Stage::taken_over; }
  StepReport& report() { return report_; }
  StepReport end_step(double clock);

  // All of it have one model.
  void enter_group() {
    notes_.clear();
    uneven_ = false;
  }
  // An exchange has ended, whether it counts or not.
  void exchanged(const StepResult& result);
  // Whether one has ended well, and so has written the mean over this node's own gradients: where
  // it does not count, they cannot be sent again.
  bool has_spent_gradients() const { return spent_; }
  // It counts. True: a member was told to stop, which is new.
  bool take(const StepTally& tally);

  // Whether all members have told that the same group has formed beside this one. Once for an
  // exchange.
  bool all_have_next_group();
  // A member was told to stop, and all know.
  bool all_stop() const { return all_stop_; }
  // The rank whose model counts at the end: one of those that were the last at work; none where all
  // ran out of data together.
  std::optional<int> last_at_work() const;
  std::uint64_t averaged_bytes() const { return averaged_bytes_; }  // of gradients, of all steps

 private:
  enum class Stage { open, exchanged, taken_over };

  Stage stage_ = Stage::open;
  bool spent_ = false;
  StepReport report_;                 // of the step under way
  std::vector<std::uint32_t> notes_;  // with the last exchange, by rank
  std::uint64_t averaged_bytes_ = 0;
  bool all_stop_ = false;
  bool uneven_ = false;  // some ranks ran out of data before others
  int last_at_work_ = 0;
};

}  // namespace dpwa::collective
