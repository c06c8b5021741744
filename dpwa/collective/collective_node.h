#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/collective/error.h"
#include "dpwa/collective/group_session.h"
#include "dpwa/collective/replica.h"
#include "dpwa/collective/starter.h"
#include "dpwa/collective/state_transfer.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/collective/step_record.h"
#include "dpwa/config/config.h"
#include "dpwa/config/place.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/node/endpoint.h"
#include "dpwa/rules/resume_state.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::collective {

// Whether a node of this file may train on without a group, by gossip averaging.
bool may_train_apart(const CollectiveConfig& config);

// One node of back end collective: the gradients of all nodes of the group are averaged in every
// step, so that the models stay bit-identical. The group begins with all nodes of the file. As
// under gossip, the node also serves its status and knows the other nodes. Free of torch: a
// framework brings the model and the exchange of gradients (Replica).
//
// collective.on_lost_rank selects the reaction to a lost node: the others end with one line, or
// form a smaller group that repeats the averaging of the step, or train by gossip averaging until
// the next group has formed. A node that joins later is admitted between two steps.
//
// This class decides what follows from an event; Starter brings the node into groups, StepRecord
// knows the steps, and StateTransfer gives all members one state. One (training) thread.
class CollectiveNode {
 public:
  // Reads a loss: gives what gives its value, once a device has computed it. NaN: there is none.
  using Loss = std::function<std::function<double()>()>;

  // `engine`: the name of what connects the members. `replica` outlives it, and so do `parameters`,
  // which a node that may train apart has; null: it may not.
  CollectiveNode(const Config& config, const std::string& engine, Replica& replica,
                 Parameters* parameters);
  ~CollectiveNode();
  CollectiveNode(const CollectiveNode&) = delete;
  CollectiveNode& operator=(const CollectiveNode&) = delete;

  // Blocks until the first group has formed, for collective.start_wait at most.
  void start(Connector connector, const Loss& loss);
  Place place() const { return starter_->place(); }
  void require_same(const std::string& what, const std::string& value) {
    starter_->require_same(what, value);
  }
  void share(const std::string& form, std::span<std::byte> program) {
    transfer_.share(form, program);
  }
  bool is_running() const { return phase_ == Phase::together || phase_ == Phase::apart; }

  void average_gradients();
  // `update`: the optimizer's step. `skips`: it is not made, though the others make theirs.
  StepReport make_step(OptimizerState& optimizer, const std::function<void()>& update,
                       const Loss& loss, bool skips);
  // The halves of a step, around an update by the program. `publishes`: to peers, when apart.
  void send(const Loss& loss, bool publishes);
  StepReport update_wait(const Loss& loss);
  bool should_stop(bool wanted);

  // Ends waits of a start, or for a group, soon. Any thread.
  void break_off();
  void show(const std::string& name, double value);
  void reload(const Config& fresh);
  FinishReport finish();
  void leave();
  ResumeState resume_state() const;
  void restore(const ResumeState& state);

 private:
  // Together, with the state before the step.
  bool makes_step() const { return phase_ == Phase::together && !steps_.is_taken_over(); }
  bool stops_on_loss() const { return config_.collective.on_lost_rank == OnLostRank::stop; }
  Endpoint& endpoint();

  // Ends the run where that is what `work` throws.
  template <class Work>
  void guarded(const Work& work);

  // A step.
  void end_exchange();  // the step's gradients are the mean, or of this node alone when apart
  StepResult exchanged(StepResult result);
  // From a group that failed (`error`), or that the others have left. True: there is another one,
  // which repeats the exchange.
  bool move_on(const CollectiveError* error);
  void give_up_if_it_must(const CollectiveError& error);
  std::uint64_t step_under_way() const;
  void take(const StepTally& tally);
  void require_equal_weights(const StepTally& tally);
  // In the first step of each group: the optimizers of all. None: this node makes no step.
  void compare(OptimizerState* optimizer);
  void between_steps();  // the exchange of all members after a step that they made together
  void move_to(Phase phase);
  void tell_status(const Loss& loss);

  // The end.
  void run_out();
  void take_final_model();

  const Config config_;
  Replica& replica_;
  std::unique_ptr<Gossip> gossip_;  // where nodes may train apart: it has the node
  std::shared_ptr<group::Inbox> inbox_ = std::make_shared<group::Inbox>();
  std::unique_ptr<Endpoint> endpoint_;  // where they may not
  std::unique_ptr<GroupSession> session_;
  StateTransfer transfer_;
  StepRecord steps_;
  std::optional<Starter> starter_;
  Phase phase_ = Phase::made;
  FinishReport finished_;
  TimePoint told_{};              // the status
  std::function<double()> loss_;  // with it, or with the next
};

}  // namespace dpwa::collective
