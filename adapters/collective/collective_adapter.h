#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "adapters/adapter.h"
#include "adapters/collective/starter.h"
#include "adapters/collective/state_transfer.h"
#include "adapters/collective/stepper.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/common/loss_reader.h"
#include "dpwa/collective/group_session.h"
#include "dpwa/config/config.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/node/endpoint.h"

namespace dpwa {

// Synchronous data parallel behind the adapter interface: the gradients of all nodes of the group
// are averaged while backward() runs, so that the models stay bit-identical after every step. The
// group begins with all nodes of the file. As under gossip, the node also serves its status and
// knows the other nodes.
//
// collective.on_lost_rank selects the reaction to a lost node: the others end with one line, or
// form a smaller group that repeats the averaging of the step, or train by gossip averaging until
// the next group has formed. A node that joins later is admitted between two steps.
//
// This class decides what follows from an event; Starter brings the node into groups, Stepper
// exchanges gradients in them, and StateTransfer gives all members one state.
class CollectiveAdapter : public Adapter {
 public:
  CollectiveAdapter(const Config& config, torch::nn::Module& model);
  ~CollectiveAdapter() override;

  void start() override;
  Place place() const override { return starter_->place(); }
  void share(const torch::Tensor& state) override;
  void require_same(const std::string& what, const std::string& value) override {
    starter_->require_same(what, value);
  }
  void average_gradients() override;
  Accumulation accumulate() override;
  void set_batch_size(std::uint64_t samples) override;
  // In addition to Adapter::step: with a policy other than stop the optimizer must live until the
  // next step or the end, because a node that joins later takes over its state.
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/false);
  }
  // The others wait for this exchange, so the clock counts it.
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    return make_step(optimizer, loss, /*skips=*/true);
  }
  bool should_stop(bool wanted) override;
  void update_send(const torch::Tensor& loss) override { send(loss, /*publishes=*/true); }
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override;
  void restore(const ResumeState& state) override;

 private:
  using Phase = collective::Phase;
  using CollectiveError = collective::CollectiveError;

  bool is_running() const { return phase_ == Phase::together || phase_ == Phase::apart; }
  // Together, with the state before the step.
  bool makes_step() const { return phase_ == Phase::together && !stepper_.is_taken_over(); }
  bool stops_on_loss() const { return config_.collective.on_lost_rank == OnLostRank::stop; }
  Endpoint& endpoint();

  // Ends the run where that is what `work` throws.
  template <class Work>
  void guarded(const Work& work);

  // A step.
  StepReport make_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss, bool skips);
  void send(const torch::Tensor& loss, bool publishes);  // the first half; `publishes`: when apart
  void end_exchange();  // the step's gradients are the mean, or of this node alone when apart
  // From a group that failed (`error`), or that the others have left. True: there is another one,
  // which repeats the exchange.
  bool move_on(const CollectiveError* error);
  void give_up_if_it_must(const CollectiveError& error);
  std::uint64_t step_under_way() const;
  void take(const collective::StepTally& tally);
  void require_equal_weights(const collective::StepTally& tally);
  // In the first step of each group: the optimizers of all. None: this node makes no step.
  void compare(torch::optim::Optimizer* optimizer);
  void between_steps();  // the exchange of all members after a step that they made together
  void move_to(Phase phase);
  void tell_status(const torch::Tensor& loss);

  // The end.
  void run_out();
  void take_final_model();

  const Config config_;
  FlatParameters flat_;
  LossReader losses_;
  std::unique_ptr<Parameters> parameters_;  // with gossip_
  std::unique_ptr<Gossip> gossip_;          // where nodes may train apart: it has the node
  std::shared_ptr<group::Inbox> inbox_ = std::make_shared<group::Inbox>();
  std::unique_ptr<Endpoint> endpoint_;  // where they may not
  std::unique_ptr<collective::GroupSession> group_session_;
  collective::StateTransfer transfer_;
  collective::Stepper stepper_;
  std::optional<collective::Starter> starter_;
  Phase phase_ = Phase::made;
  FinishReport finished_;
  TimePoint told_{};              // the status
  std::function<double()> loss_;  // with it, or with the next
};

}  // namespace dpwa
