#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/common/backward_hooks.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/common/loss_reader.h"
#include "adapters/kvstore/known_optimizer.h"
#include "adapters/kvstore/optimizer_terms.h"
#include "adapters/kvstore/run_agreement.h"
#include "adapters/kvstore/shared_gradients.h"
#include "adapters/kvstore/step_exchange.h"
#include "adapters/kvstore/store_states.h"
#include "adapters/kvstore/watched_tensors.h"
#include "adapters/kvstore/weight_transfer.h"
#include "adapters/kvstore/worker_model.h"
#include "adapters/kvstore/worker_session.h"
#include "dpwa/config/config.h"
#include "dpwa/node/endpoint.h"

namespace dpwa {

// A worker of the parameter server behind the adapter interface, for the types dist_*. Every
// parameter is a key. The node itself serves only its status.
//
// kvstore.update: auto is server for a model of few enough parameters, because each of them costs
// workers and servers time as a key.
//
// kvstore.update: server. step() pulls the new weights, and the optimizer of the program never
// runs. Its state lies on the servers, its name and numbers go with each gradient. backward()
// pushes gradients as soon as they are complete where these numbers are known: after
// set_optimizer(), and while they stay the same from step to step. Else step() pushes them.
//
// kvstore.update: worker (merged types). The gradients travel in the same way and come back as
// their mean; the optimizer runs on each worker. One that comes later, or with another checkpoint
// than the one that a run begins with, takes weights and optimizer's state from another worker, by
// way of the servers (dpwa/kvstore/state_transfer.h).
//
// A program that needs the gradients between backward() and step() calls average_gradients() or
// update_send(). With update: server nothing leaves in backward() from then on. Merged types then
// have a second exchange in a step: the mean of the gradients comes first, what the program makes
// of it goes to the servers.
class KvstoreAdapter : public Adapter {
 public:
  KvstoreAdapter(const Config& config, torch::nn::Module& model);
  ~KvstoreAdapter() override;

  void start() override;
  Place place() const override { return place_; }
  // In addition to Adapter::require_same: throws std::length_error beyond
  // kvstore::max_run_settings_bytes.
  void require_same(const std::string& what, const std::string& value) override;
  void average_gradients() override;
  Accumulation accumulate() override;
  void set_batch_size(std::uint64_t samples) override;
  void set_optimizer(const torch::optim::Optimizer& optimizer) override;
  // In addition to Adapter::step: numbers of the optimizer that have changed after its gradients
  // left in backward() count from the next step, with a warning.
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  // With update: server this worker counts for nothing in the step, and others go on.
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override { return {clock_, {}}; }
  void restore(const ResumeState& state) override;
  bool take_optimizer_state(torch::optim::Optimizer& optimizer) override;

 private:
  // Finishing: waits for the others and the final weights.
  enum class Phase { made, running, finishing, left };
  // Sent: gradients have left in backward(). Exchanged: .grad holds the mean, or the weights are
  // those of the next step.
  enum class Stage { open, sent, exchanged };
  // The step under way.
  struct UnderWay {
    std::optional<kvstore::OptimizerTerms> terms;  // with which the gradients leave
    std::vector<bool> fired;  // by trained parameter: a backward pass has completed the gradient
    Stage stage = Stage::open;
    kvstore::SentGradients in_backward;
    bool dropped = false;  // left out: nothing more is sent
    bool in_halves = false;
    bool skips = false;  // without the optimizer's step: skip_step()
    std::vector<at::Tensor>
        before;  // in halves: the trained parameters before the optimizer's step
    StepReport report;
    kvclient::ValueTraffic traffic_before;
  };
  // Of all steps.
  struct Totals {
    kvclient::ValueTraffic moved;
    std::uint64_t dropped = 0;
    std::uint64_t not_finite = 0;
    std::uint64_t buffers_not_finite = 0;
    std::set<std::string> seen;  // all workers that took part beside this one
    bool has_counted = false;    // an update of this worker
    bool warned_of_change = false;
  };

  // Beginning and end (kvstore_adapter.cpp).
  bool is_running() const { return phase_ == Phase::running; }
  bool merged() const { return merges(config_.kvstore.type, config_.kvstore.staleness); }
  void check_model() const;
  void check_step() const;
  void make_weights();
  void make_gradients();
  void begin_at(std::uint64_t step);
  void update_place();
  void look_for_newcomers();
  kvstore::ExchangeReport take_weights(std::uint64_t clock);
  kvstore::ExchangeReport take_from_workers();
  void take_final_weights();
  void lose_final_model(const std::string& why);
  void note_participants();

  // A step (kvstore_steps.cpp).
  void fired(std::size_t index);
  kvclient::PushTerms terms() const;
  std::optional<at::Tensor> gradient_of(std::size_t index, kvclient::PushTerms& terms);
  void push_gradient(std::size_t index);
  void push_buffers();
  void exchange_gradients();
  void require_equal_weights(const kvstore::ExchangeReport& exchanged);
  void exchange_weights();
  void settle(const kvstore::ExchangeReport& exchanged);
  void rejoin();
  StepReport end_step(const torch::Tensor& loss);
  void tell_status(const StepReport& report, const torch::Tensor& loss);
  void step_here(torch::optim::Optimizer& optimizer);
  void hold_back();

  const Config config_;
  FlatParameters flat_;
  kvstore::WorkerModel model_;
  const bool by_servers_;  // the optimizer's steps
  kvstore::WrittenWeights written_;
  kvstore::RunAgreement agreement_;
  kvstore::KnownOptimizer optimizer_;  // update: worker
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<kvstore::StepExchange> weights_;       // keys: parameters, buffers
  std::unique_ptr<kvstore::SharedGradients> gradients_;  // null: not needed so far
  std::unique_ptr<kvstore::WorkerSession> session_;  // destroyed before the tensors that it reads
  std::unique_ptr<kvstore::StoreStates> states_;
  std::unique_ptr<kvstore::WeightTransfer> transfer_;  // update: worker
  std::unique_ptr<BackwardHooks> hooks_;
  Phase phase_ = Phase::made;
  FinishReport finished_;

  Place place_;
  double clock_ = 0;
  double clock_at_begin_ = 0;  // of the run, at its step 0
  std::uint64_t step_ = 0;     // the step by the count of the servers
  double samples_ = 1;
  // update: server. Of the last step; what leaves in backward() has them while steady_.
  std::optional<kvstore::OptimizerTerms> last_terms_;
  bool steady_ = false;           // they were those of the step before, too
  bool held_back_ = false;        // update: server: nothing leaves in backward()
  bool has_weights_ = false;      // of the run
  bool restored_ = false;         // from a checkpoint
  bool places_restored_ = false;  // update: server: in the first step
  bool accumulating_ = false;
  UnderWay now_;
  StepReport last_report_;  // of the step before
  Totals totals_;
  LossReader losses_;
  TimePoint told_{};
};

}  // namespace dpwa
