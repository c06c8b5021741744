#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/gradient_reducer.h"
#include "adapters/collective/step_message.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::collective {

// The steps of a node in the groups that it enters one after the other: the exchange of gradients,
// again in the next group where one has failed, and what the members tell one another with it. One
// (training) thread.
class Stepper {
 public:
  // The model outlives it.
  Stepper(const CollectiveConfig& config, torch::nn::Module& model)
      : options_{config}, model_(model) {}

  // Samples in the batch whose backward pass comes next; 1 until the first call.
  void set_samples(double samples);
  // While on, backward() sends nothing.
  void set_accumulating(bool on);

  // The group outlives its use, until drop(). The functions are called around the waits for others,
  // as in ReducerOptions. Throws CollectiveError.
  void enter(const ProcessGroup& group, std::function<void(const std::string&)> begin_wait,
             std::function<void()> end_wait);
  void drop() { reducer_.reset(); }

  // Ends the exchange that the backward pass has begun; without one sends what passes under
  // accumulate() have left, or else zeros, so that no member waits.
  GradientReducer::Result exchange();
  // The same gradients in another group, where the exchange has failed or did not count.
  GradientReducer::Result repeat();
  // Without a batch, for a node that has no more.
  GradientReducer::Result exchange_joined();
  // The exchange counts. True: a member was told to stop, which is new.
  bool take(const StepTally& tally);

  // The step under way: open, then exchanged; or the state after it was taken over from others.
  bool is_open() const { return stage_ == Stage::open; }
  bool is_taken_over() const { return stage_ == Stage::taken_over; }
  void take_over() { stage_ = Stage::taken_over; }
  StepReport& report() { return report_; }
  StepReport end_step(double clock);

  // Tells all with the next exchanges that this member stops, or which group has formed for it
  // beside this one; 0: none.
  void tell_stop() { reducer_->set_stopping(); }
  void tell_next_group(std::uint64_t number);
  // Whether all members have told that the same one has formed. Once for an exchange.
  bool all_have_next_group();

  // A member was told to stop, and all know.
  bool all_stop() const { return all_stop_; }
  // The rank whose model counts at the end: one of those that were the last at work; none where all
  // ran out of data together.
  std::optional<int> last_at_work() const;
  std::uint64_t averaged_bytes() const { return averaged_bytes_; }  // of gradients, of all steps

 private:
  enum class Stage { open, exchanged, taken_over };
  GradientReducer::Result end_exchange();

  ReducerOptions options_;
  torch::nn::Module& model_;
  std::unique_ptr<GradientReducer> reducer_;  // null: in no group
  double samples_ = 1;
  bool accumulating_ = false;
  Stage stage_ = Stage::open;
  StepReport report_;                 // of the step under way
  std::vector<bool> used_;            // in its exchange: GradientReducer::used()
  std::vector<std::uint32_t> notes_;  // with the last exchange, by rank
  std::uint64_t averaged_bytes_ = 0;
  bool all_stop_ = false;
  bool uneven_ = false;  // some ranks ran out of data before others
  int last_at_work_ = 0;
};

}  // namespace dpwa::collective
