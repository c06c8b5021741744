#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/config/place.h"
#include "dpwa/kvworker/known_optimizer.h"
#include "dpwa/kvworker/run_agreement.h"
#include "dpwa/kvworker/shared_gradients.h"
#include "dpwa/kvworker/step_exchange.h"
#include "dpwa/kvworker/store_states.h"
#include "dpwa/kvworker/weight_transfer.h"
#include "dpwa/kvworker/worker_model.h"
#include "dpwa/kvworker/worker_optimizer.h"
#include "dpwa/kvworker/worker_session.h"
#include "dpwa/node/endpoint.h"
#include "dpwa/rules/resume_state.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::kvstore {

// A worker of the parameter server, for the types dist_*: the steps of back end kvstore, free of
// torch. Every parameter is a key. The node itself serves only its status. A framework brings the
// model (WorkerModel) and the optimizer (WorkerOptimizer). The calls are those of Adapter
// (adapters/adapter.h), in its order. One (training) thread, but for break_off().
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
class Worker {
 public:
  using Loss = std::function<double()>;  // NaN: unknown

  // `model` outlives it.
  Worker(const Config& config, WorkerModel& model);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  Place place() const { return place_; }
  // In addition: throws std::length_error beyond max_run_settings_bytes.
  void require_same(const std::string& what, const std::string& value) {
    agreement_.require_same(what, value);
  }
  bool is_running() const { return phase_ == Phase::running; }
  bool updates_on_servers() const { return by_servers_; }

  // A backward pass has completed the gradient of a trained parameter. Throws std::logic_error for
  // a second pass in a step.
  void fired(std::size_t trained);
  // Whether the next gradient would be the first one of its step.
  bool is_at_begin() const {
    return is_running() && !held_back_ && !now_.dropped && now_.stage == Stage::open;
  }
  void set_accumulating(bool on) { accumulating_ = on; }
  void set_samples(double samples) { samples_ = samples; }
  void average_gradients();
  void set_optimizer(const WorkerOptimizer& optimizer);
  // Numbers of the optimizer that have changed after its gradients left in backward() count from
  // the next step, with a warning. `skips`: not the optimizer's step; with update: server this
  // worker counts for nothing in the step, and others go on.
  StepReport step(WorkerOptimizer& optimizer, const Loss& loss, bool skips = false);
  void update_send();
  StepReport update_wait(const Loss& loss);

  void show(const std::string& name, double value);
  void reload(const Config& fresh);
  FinishReport finish();
  void leave();
  // Ends a wait for others soon, as if the process were told to stop. Any thread.
  void break_off();
  ResumeState resume_state() const { return {clock_, {}}; }
  void restore(const ResumeState& state);
  bool take_optimizer_state(WorkerOptimizer& optimizer);

 private:
  // Finishing: waits for the others and the final weights.
  enum class Phase { made, running, finishing, left };
  // Sent: gradients have left in backward(). Exchanged: .grad holds the mean, or the weights are
  // those of the next step.
  enum class Stage { open, sent, exchanged };
  // The step under way.
  struct UnderWay {
    std::optional<OptimizerTerms> terms;  // with which the gradients leave
    std::vector<bool> fired;  // by trained parameter: a backward pass has completed the gradient
    Stage stage = Stage::open;
    bool dropped = false;  // left out: nothing more is sent
    bool in_halves = false;
    bool skips = false;  // without the optimizer's step: skip_step()
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

  // Beginning and end (worker.cpp).
  bool merged() const { return merges(config_.kvstore.type, config_.kvstore.staleness); }
  void check_model() const;
  void check_step() const;
  void open_session(std::unique_ptr<WorkerSession> session);
  void make_weights();
  void make_gradients();
  void begin_at(std::uint64_t step);
  void update_place();
  void look_for_newcomers();
  ExchangeReport take_weights(std::uint64_t clock);
  ExchangeReport take_from_workers();
  void take_final_weights();
  void lose_final_model(const std::string& why);
  void note_participants();

  // A step (worker_steps.cpp).
  kvclient::PushTerms terms() const;
  std::optional<Lent> gradient_of(std::size_t trained, kvclient::PushTerms& terms);
  void push_gradient(std::size_t trained);
  void push_buffers();
  void exchange_gradients();
  void require_equal_weights(const ExchangeReport& exchanged);
  void exchange_weights();
  void settle(const ExchangeReport& exchanged);
  void rejoin();
  StepReport end_step(const Loss& loss);
  void tell_status(const StepReport& report, const Loss& loss);
  void step_here(WorkerOptimizer& optimizer);
  void hold_back();

  const Config config_;
  WorkerModel& model_;
  const bool by_servers_;   // the optimizer's steps
  std::vector<bool> used_;  // by trained parameter: it has had a gradient
  RunAgreement agreement_;
  KnownOptimizer optimizer_;  // update: worker
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<StepExchange> weights_;       // keys: parameters, buffers
  std::unique_ptr<SharedGradients> gradients_;  // null: not needed so far
  Mutex mutex_;
  bool broken_off_ DPWA_GUARDED_BY(mutex_) = false;
  // Changed by the training thread with the mutex, for break_off(). Destroyed before what it reads.
  std::unique_ptr<WorkerSession> session_;
  std::unique_ptr<StoreStates> states_;
  std::unique_ptr<WeightTransfer> transfer_;  // update: worker
  Phase phase_ = Phase::made;
  FinishReport finished_;

  Place place_;
  double clock_ = 0;
  double clock_at_begin_ = 0;  // of the run, at its step 0
  std::uint64_t step_ = 0;     // the step by the count of the servers
  double samples_ = 1;
  // update: server. Of the last step; what leaves in backward() has them while steady_.
  std::optional<OptimizerTerms> last_terms_;
  bool steady_ = false;           // they were those of the step before, too
  bool held_back_ = false;        // update: server: nothing leaves in backward()
  bool has_weights_ = false;      // of the run
  bool restored_ = false;         // from a checkpoint
  bool places_restored_ = false;  // update: server: in the first step
  bool accumulating_ = false;
  UnderWay now_;
  StepReport last_report_;  // of the step before
  Totals totals_;
  TimePoint told_{};
};

}  // namespace dpwa::kvstore
