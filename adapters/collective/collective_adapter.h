#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/collective/engine/signature.h"
#include "adapters/collective/gradient_reducer.h"
#include "adapters/collective/group_session.h"
#include "adapters/collective/terms.h"
#include "adapters/common/flat_parameters.h"
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
class CollectiveAdapter : public Adapter {
 public:
  CollectiveAdapter(const Config& config, torch::nn::Module& model);
  ~CollectiveAdapter() override;

  void start() override;
  Place place() const override { return place_; }
  void share(const torch::Tensor& state) override;
  void require_same(const std::string& what, const std::string& value) override;
  void average_gradients() override;
  Accumulation accumulate() override;
  void set_batch_size(std::uint64_t samples) override;
  // In addition to Adapter::step: with a policy other than stop the optimizer must live until the
  // next step or the end, because a node that joins later takes over its state.
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  bool should_stop(bool wanted) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override;
  void restore(const ResumeState& state) override;

 private:
  enum class Phase { made, running, left };
  using CollectiveError = collective::CollectiveError;

  // A step.
  bool is_running() const { return phase_ == Phase::running; }
  void end_exchange();  // the step's gradients are the mean, or of this node alone when apart
  // From a group that failed (`error`), or that the others have left. True: there is another one,
  // which repeats the exchange.
  bool move_on(const CollectiveError* error);
  std::uint64_t step_under_way() const;
  void take(const collective::StepTally& tally);
  void require_equal_weights(const collective::StepTally& tally);
  void between_steps();  // the exchange of all members after a step that they made together
  void admit_newcomers();
  void tell_status(const torch::Tensor& loss);

  // Groups (collective_groups.cpp).
  void form_first_group(TimePoint until);
  void tell_wait();
  void enter(collective::GroupFormer::Formed formed);
  // In the first step of each group: the optimizers of all. None: this node makes no step.
  void compare(torch::optim::Optimizer* optimizer);
  void compare_optimizers(torch::optim::Optimizer* optimizer);
  struct Comparison {
    std::optional<int> owner;  // the rank whose optimizer counts; none: nobody has one
    bool fits = true;          // that of this node is like it
  };
  Comparison compare_words(const collective::Signature* own);
  void make_reducer();
  // After the end of a group: moves into the next one. False: there is none, because this node
  // trains apart from now on, or was told to stop and has left.
  bool regroup();
  void go_apart(const std::string& why);
  void come_together();  // from apart, once a group has formed
  void drop_group();
  bool may_go_on(const CollectiveError& error) const;
  [[noreturn]] void give_up(const CollectiveError& error);
  [[noreturn]] void end(const std::string& why);

  // The end (collective_finish.cpp).
  void run_out();
  void take_final_model();
  Endpoint& endpoint();

  const Config config_;
  torch::nn::Module& model_;
  FlatParameters flat_;
  std::unique_ptr<Parameters> parameters_;  // with gossip_
  std::unique_ptr<Gossip> gossip_;          // where nodes may train apart: it has the node
  std::shared_ptr<group::Inbox> inbox_ = std::make_shared<group::Inbox>();
  std::unique_ptr<Endpoint> endpoint_;  // where they may not
  std::unique_ptr<collective::GroupSession> group_session_;
  std::unique_ptr<collective::GradientReducer> reducer_;  // while together
  Phase phase_ = Phase::made;
  FinishReport finished_;
  torch::Tensor shared_state_;  // of the program; undefined: none
  Settings terms_;              // the same on all nodes, except for the model

  Place place_;
  double clock_ = 0;
  std::uint64_t averaged_bytes_ = 0;  // of gradients, since the start
  double samples_ = 1;
  bool accumulating_ = false;
  bool has_state_ = false;             // that of a group, or of what came after it
  bool apart_ = false;                 // trains by gossip averaging
  std::string warned_;                 // of a minority
  bool hands_over_optimizer_ = false;  // at the next step some take over its state
  bool awaits_optimizer_ = false;      // this node is one of these: its state is not whole
  std::vector<bool> behind_;           // by rank: takes over the state of the source
  bool fresh_ = false;                 // the first group of a run
  TimePoint told_wait_{};

  StepReport report_;        // of the step under way
  bool exchanged_ = false;   // the step's gradients are the mean
  bool taken_over_ = false;  // the state after this step was taken over from others
  std::optional<collective::StepTally> tally_;  // of the step under way
  bool resync_ = false;    // the first step of a group: the program's state follows
  int source_ = 0;         // whose state that is
  bool stopping_ = false;  // a node was told to stop, and all know
  int last_at_work_ = 0;   // a rank that had a batch in the last step in which one had
  bool compared_ = false;  // the optimizers of all nodes of the group
  bool uneven_ = false;    // some ranks ran out of data before others
  TimePoint told_{};
};

}  // namespace dpwa
