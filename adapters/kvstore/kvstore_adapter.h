#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/common/backward_hooks.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/kvstore/key_states.h"
#include "adapters/kvstore/optimizer_terms.h"
#include "adapters/kvstore/sent_gradients.h"
#include "adapters/kvstore/shared_buffers.h"
#include "adapters/kvstore/shared_gradients.h"
#include "adapters/kvstore/step_exchange.h"
#include "adapters/kvstore/worker_session.h"
#include "adapters/kvstore/written_weights.h"
#include "dpwa/config/config.h"
#include "dpwa/kvstore/run_record.h"
#include "dpwa/kvstore/state_transfer.h"
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
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override { return {clock_, {}}; }
  void restore(const ResumeState& state) override;
  bool take_optimizer_state(torch::optim::Optimizer& optimizer) override;

 private:
  enum class Phase { made, running, left };

  // The beginning (kvstore_adapter.cpp).
  bool is_running() const { return phase_ == Phase::running; }
  kvstore::MemberId self() const { return {config_.self, session_->client().incarnation()}; }
  bool merged() const { return merges(config_.kvstore.type, config_.kvstore.staleness); }
  bool by_servers() const { return by_servers_; }
  void check_model() const;
  void check_step() const;
  void agree();
  kvstore::RunOfOthers read_run();
  void compare(const kvstore::RunOfOthers& run) const;
  void make_weights();
  void make_gradients();
  void begin_at(std::uint64_t step);
  void update_place();
  kvstore::ExchangeReport take_weights(std::uint64_t clock);
  void take_final_weights();
  void lose_final_model(const std::string& why);
  void note_participants();

  // The state of the optimizer, for others (kvstore_states.cpp).
  kvstore::KeyShape shape_of(std::size_t parameter) const;
  kvclient::Outcome answer_to(kvclient::Ticket ticket, const std::string& what,
                              kvstore::ExchangeReport& report);
  void wait_placed(const std::vector<kvclient::Ticket>& tickets, kvstore::ExchangeReport& report);
  std::vector<std::optional<kvstore::KeyState>> states_of_servers(kvstore::ExchangeReport& report);
  void make_note();
  kvstore::TransferNote read_note(kvstore::ExchangeReport& report);
  void write_note(const kvstore::TransferNote& note, kvstore::ExchangeReport& report);
  void look_for_newcomers();
  void give_weights(kvstore::ExchangeReport& report);
  std::vector<at::Tensor> pull_values(kvstore::ExchangeReport& report);
  void take_values(const std::vector<at::Tensor>& values);
  bool take_begin(kvstore::ExchangeReport& report);
  bool take_given(const kvstore::TransferNote& note, kvstore::ExchangeReport& report);
  kvstore::ExchangeReport take_from_workers(bool has_own);
  void give_to(torch::optim::Optimizer& optimizer);
  void place_restored(const torch::optim::Optimizer& optimizer);

  // A step (kvstore_steps.cpp).
  void fired(std::size_t index);
  kvclient::PushTerms terms() const;
  std::optional<at::Tensor> gradient_of(std::size_t index, kvclient::PushTerms& terms);
  void push_gradient(std::size_t index);
  void push_buffers();
  void exchange_gradients();
  std::optional<std::uint32_t> checksum_of_weights() const;
  void require_equal_weights(const kvstore::ExchangeReport& exchanged);
  void exchange_weights();
  void settle(const kvstore::ExchangeReport& exchanged);
  void rejoin();
  StepReport end_step(const torch::Tensor& loss);
  void tell_status(const StepReport& report, const torch::Tensor& loss);
  void note_parameters(const torch::optim::Optimizer& optimizer);
  void step_here(torch::optim::Optimizer& optimizer);
  void hold_back();

  const Config config_;
  FlatParameters flat_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;  // in the order of the forward pass
  std::vector<std::size_t> trained_;                            // of parameters_: by index of hooks
  std::vector<at::Tensor> trained_parameters_;
  bool by_servers_ = true;  // the optimizer's steps
  kvstore::SharedBuffers buffers_;
  kvstore::WrittenWeights written_;
  kvstore::RunRecord record_;  // what has to be the same on all workers
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<kvstore::StepExchange> weights_;       // keys: parameters, buffers
  std::unique_ptr<kvstore::SharedGradients> gradients_;  // null: not needed so far
  std::vector<at::Tensor> outs_;                         // of weights_
  std::unique_ptr<kvstore::WorkerSession> session_;  // destroyed before the tensors that it reads
  std::unique_ptr<BackwardHooks> hooks_;
  Phase phase_ = Phase::made;
  FinishReport finished_;

  Place place_;
  double clock_ = 0;
  double clock_at_begin_ = 0;  // of the run, at its step 0
  std::uint64_t step_ = 0;     // the step by the count of the servers
  double samples_ = 1;
  std::set<std::string> seen_;  // all workers that took part beside this one
  bool has_counted_ = false;    // an update of this worker
  // update: server. Of the last step; what leaves in backward() has them while steady_.
  std::optional<kvstore::OptimizerTerms> last_terms_;
  bool steady_ = false;  // they were those of the step before, too
  // update: worker. The program's optimizer during step(); else null. After set_optimizer() in the
  // first step, and a step whose gradients were averaged before it: a copy, for the next average.
  const torch::optim::Optimizer* stepping_ = nullptr;
  std::optional<kvstore::OptimizerCopy> last_optimizer_;
  std::vector<const void*> stepped_;  // parameters of the last step's optimizer, by identity
  bool several_optimizers_ = false;   // that of a later step had not all of them
  std::vector<bool> used_;            // of trained_: it has had a gradient
  bool held_back_ = false;            // update: server: nothing leaves in backward()
  bool by_halves_ = false;            // update_send() was called
  bool has_weights_ = false;          // of the run
  // update: worker: by trained_, from another worker, for an optimizer that is not known yet.
  std::vector<std::optional<kvstore::KeyState>> given_;
  bool restored_ = false;         // from a checkpoint
  bool places_restored_ = false;  // update: server: in the first step

  // --- of the step under way
  std::optional<kvstore::OptimizerTerms> terms_;  // with which the gradients leave
  std::vector<bool> fired_;  // of trained_: a backward pass has completed the gradient
  bool accumulating_ = false;
  bool sent_ = false;  // in backward()
  kvstore::SentGradients in_backward_;
  bool averaged_ = false;   // .grad holds the mean
  bool exchanged_ = false;  // something was exchanged
  bool dropped_ = false;    // left out: nothing more is sent
  bool in_halves_ = false;
  std::vector<at::Tensor> before_;  // in halves: the trained parameters before the optimizer's step
  StepReport report_;
  kvclient::ValueTraffic traffic_before_;
  StepReport last_report_;  // of the step before

  // --- of all steps
  kvclient::ValueTraffic moved_;
  std::uint64_t steps_dropped_ = 0;
  std::uint64_t not_finite_ = 0;
  std::uint64_t buffers_not_finite_ = 0;  // steps
  bool warned_of_change_ = false;
  bool finishing_ = false;  // waits for the others and the final weights
  TimePoint told_{};
};

}  // namespace dpwa
