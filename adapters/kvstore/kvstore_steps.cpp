// The steps of KvstoreAdapter.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "adapters/common/backward_hooks.h"
#include "adapters/common/graph_capture.h"
#include "adapters/common/tensor_checksum.h"
#include "adapters/kvstore/kvstore_adapter.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/compared_steps.h"

namespace dpwa {
namespace {

using Steady = std::chrono::steady_clock;
using kvclient::PushTerms;
using kvstore::ExchangeReport;
using kvstore::OptimizerTerms;

constexpr auto between_status_notes = std::chrono::milliseconds(100);

// The options of an SGD that adds a change unscaled.
kvstore::Bytes plain_step() {
  kvstore::OptimizerOptions options = kvstore::default_options(kvstore::OptimizerKind::sgd);
  options.learning_rate = 1;
  const kvstore::OptionsBytes form = kvstore::encode(options);
  return {form.begin(), form.end()};
}

// Of kvstore.update: server.
OptimizerTerms terms_of(const torch::optim::Optimizer& optimizer,
                        const std::vector<at::Tensor>& parameters) {
  try {
    return {optimizer, parameters};
  } catch (const kvstore::UnknownOptimizer& unknown) {
    throw KVStoreError(std::string(unknown.what()) +
                       "; accepted: one of these, or kvstore.update: worker, where any optimizer "
                       "runs that needs no closure");
  }
}

// A line at the first time and at every hundredth after it. `count`: of the times so far.
void warn_at_times(std::uint64_t& count, const std::string& before, const std::string& after) {
  if (count++ % 100 == 0) log(LogLevel::warn, "kvstore", before + std::to_string(count) + after);
}

}  // namespace

PushTerms KvstoreAdapter::terms() const {
  PushTerms terms;
  terms.step = step_;
  terms.weight = samples_;
  terms.merge = kvstore::Merge::mean;
  return terms;
}

// What goes to the servers' optimizer. A parameter without a gradient counts as zeros for the
// others that have one, because a round waits for all workers. One that is frozen, or that has
// never had a gradient here, or that has none on any worker, or whose step is skipped, counts not
// at all, so that nothing moves it. None: nothing need be pushed.
std::optional<at::Tensor> KvstoreAdapter::gradient_of(std::size_t index, PushTerms& terms) {
  const at::Tensor& parameter = model_.trained_parameters[index];
  const at::Tensor& gradient = parameter.grad();
  if (gradient.defined() && !now_.skips) {
    model_.used[index] = true;
    return gradient;
  }
  if (config_.kvstore.type == KvstoreType::dist_async) return std::nullopt;
  // Others may wait for this push.
  if (!merged() || !model_.used[index] || !parameter.requires_grad() || now_.skips ||
      now_.stage == Stage::exchanged)
    terms.weight = 0;
  return at::zeros_like(parameter);
}

// Called by the autograd engine: the gradient of a parameter is complete.
void KvstoreAdapter::fired(std::size_t index) {
  if (phase_ != Phase::running || held_back_ || now_.dropped) return;
  if (now_.stage == Stage::open) require_no_capture(flat_.device());
  if (now_.fired[index] || now_.stage == Stage::exchanged) {
    now_.in_backward.clear();  // step() takes what has left
    refuse_second_pass();
  }
  if (accumulating_) return;
  now_.fired[index] = true;
  // In the first step the program may yet call average_gradients(), and new servers get the
  // optimizer's state before the first push, in step().
  const bool first = !last_terms_ || places_restored_;
  if (by_servers_ && (first || !now_.terms || now_.terms->of(index) == nullptr)) return;
  now_.stage = Stage::sent;
  push_gradient(index);
  now_.in_backward.add(model_.parameters[model_.trained[index]].first,
                       model_.trained_parameters[index]);
}

// Sent to the servers' optimizer, or to be averaged.
void KvstoreAdapter::push_gradient(std::size_t index) {
  PushTerms own = terms();
  if (!by_servers_) return gradients_->push(index, own);
  own.optimizer = *now_.terms->of(index);
  const auto gradient = gradient_of(index, own);
  if (gradient) weights_->push(model_.trained[index], *gradient, own);
}

// Each worker's change counts in proportion, where each is an update of its own.
void KvstoreAdapter::push_buffers() {
  const double scale =
      merged() ? 1 : 1 / static_cast<double>(std::max<std::size_t>(1, place_.size));
  model_.buffers.push(*weights_, terms(), scale);
}

void KvstoreAdapter::exchange_gradients() {
  const StepScope counted(endpoint_->local().steps, StepClock::Part::publish, Steady::now);
  now_.stage = Stage::exchanged;
  if (!gradients_) make_gradients();
  // With update: server the servers have the weights.
  const bool compares = !by_servers_ && compares_weights_at(step_);
  gradients_->push_rest(
      terms(), compares ? std::optional(checksum_of(model_.trained_parameters)) : std::nullopt);
  session_->client().at(step_, /*waiting=*/true);
  gradients_->pull(step_);
  if (!by_servers_) {
    push_buffers();
    weights_->pull_pushed(step_);
  }
  now_.report.participants = static_cast<unsigned>(session_->client().workers().size());
  ExchangeReport exchanged = gradients_->finish();
  if (!by_servers_ && !exchanged.stopped) exchanged.add(weights_->finish(model_.outs));
  for (std::size_t i = 0; i < model_.trained.size() && exchanged.complete(); ++i)
    if (gradients_->is_there(i)) model_.used[i] = true;
  require_equal_weights(exchanged);
  settle(exchanged);
}

// A difference never heals, and spoils the model. A worker whose numbers did not count in this step
// has nothing to compare.
void KvstoreAdapter::require_equal_weights(const kvstore::ExchangeReport& exchanged) {
  const bool counts = exchanged.complete() && !exchanged.dropped && samples_ > 0;
  if (!counts || gradients_->has_equal_checksums()) return;
  leave();
  throw std::runtime_error(
      "node '" + config_.self + "' ends at clock " + std::to_string(std::llround(clock_)) +
      ", because its weights differ from those of the other workers, and must be equal after each "
      "step; accepted: the same optimizer and numbers on all workers, processors of one type, and "
      "nothing else that writes weights");
}

// All pushes of this step to the weights have been made, except those of the buffers.
void KvstoreAdapter::exchange_weights() {
  const StepScope counted(endpoint_->local().steps, StepClock::Part::publish, Steady::now);
  now_.stage = Stage::exchanged;
  push_buffers();
  session_->client().at(step_, /*waiting=*/true);
  weights_->pull_pushed(step_);
  now_.report.participants = static_cast<unsigned>(session_->client().workers().size());
  settle(weights_->finish(model_.outs));
}

void KvstoreAdapter::settle(const ExchangeReport& exchanged) {
  now_.report.waited += exchanged.waited;
  if (exchanged.stopped) {
    log(LogLevel::info, "kvstore", "told to stop while it waited for the servers");
    now_.report.made = false;
    return leave();
  }
  if (exchanged.left_out) return rejoin();
  if (exchanged.dropped) now_.report.outcome = Outcome::dropped;
  if (exchanged.buffers_not_finite)
    warn_at_times(totals_.buffers_not_finite,
                  "buffers of this node's model are not finite: their changes did not count, in ",
                  " steps so far");
  if (exchanged.not_finite) {
    now_.report.outcome = Outcome::rejected;
    now_.report.refused = 1;
  }
}

// The gradients of this step belong to old weights and are dropped.
void KvstoreAdapter::rejoin() {
  now_.dropped = true;
  now_.report.outcome = Outcome::dropped;
  // The program may be about to call its optimizer.
  if (!by_servers_ && optimizer_.steps_by_halves()) {
    leave();
    throw std::runtime_error(
        "node '" + config_.self + "' was left out, because " + session_->client().why_left_out() +
        ", and cannot continue with kvstore.update 'worker' and update_send(); "
        "accepted: step()");
  }
  log_event(EventKind::left_out, LogLevel::warn, "kvstore",
            "left out, because " + session_->client().why_left_out() +
                ": takes the current weights and continues");
  ExchangeReport pulled;
  try {
    do {
      const std::uint64_t first = session_->join();
      if (by_servers_) step_ = first;
      pulled = by_servers_ ? take_weights(first) : take_from_workers();
      now_.report.waited += pulled.waited;
    } while (pulled.left_out);
  } catch (...) {
    leave();
    throw;
  }
  if (pulled.stopped) {
    now_.report.made = false;
    leave();
  }
}

void KvstoreAdapter::hold_back() {
  if (!by_servers_) return;
  if (now_.stage == Stage::sent) {
    throw std::logic_error(
        "gradients of this step have left in backward(): call average_gradients() or update_send() "
        "in every step, or use kvstore.update: worker");
  }
  held_back_ = true;
}

void KvstoreAdapter::average_gradients() {
  if (!is_running()) return;
  check_step();
  hold_back();
  if (merged()) exchange_gradients();
}

void KvstoreAdapter::set_optimizer(const torch::optim::Optimizer& optimizer) {
  if (!is_running()) return;
  if (!by_servers_) {
    // average_gradients() may wait for a worker that wants its state; later the last step tells.
    if (step_ == 0 && !transfer_->has_states()) optimizer_.keep(optimizer);
  } else if (now_.stage != Stage::sent && !held_back_) {
    now_.terms = terms_of(optimizer, model_.trained_parameters);
  }
}

StepReport KvstoreAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  if (!is_running()) {
    if (now_.report.made && !now_.skips) optimizer.step();
    return end_step(loss);
  }
  check_step();
  if (!by_servers_) {
    step_here(optimizer);
    return end_step(loss);
  }
  OptimizerTerms now = terms_of(optimizer, model_.trained_parameters);
  const bool sent = now_.stage == Stage::sent;
  if (sent && *now_.terms != now && !std::exchange(totals_.warned_of_change, true)) {
    log(LogLevel::warn, "kvstore",
        "the optimizer's numbers changed after gradients had left in backward(): the change counts "
        "from the next step; accepted: set_optimizer() before backward()");
  }
  steady_ = last_terms_ == now;
  last_terms_ = now;
  if (!sent) now_.terms = std::move(now);
  if (std::exchange(places_restored_, false)) states_->place_restored(optimizer);
  if (!now_.dropped && phase_ == Phase::running) {
    for (std::size_t i = model_.trained.size(); i-- > 0;) {
      if (now_.terms->of(i) != nullptr && !weights_->has_pushed(model_.trained[i]))
        push_gradient(i);
    }
    exchange_weights();
  }
  return end_step(loss);
}

StepReport KvstoreAdapter::skip_step(torch::optim::Optimizer& optimizer,
                                     const torch::Tensor& loss) {
  if (is_running()) hold_back();
  now_.skips = true;
  return step(optimizer, loss);
}

// update: worker.
void KvstoreAdapter::step_here(torch::optim::Optimizer& optimizer) {
  optimizer_.begin_step(optimizer);
  const OnExit over([this] { optimizer_.end_step(); });
  const bool averaged_before = now_.stage == Stage::exchanged;
  transfer_->give_to(optimizer);
  if (!averaged_before) exchange_gradients();
  if (is_running() && now_.dropped) {
    transfer_->give_to(optimizer);
  } else if (is_running() && !now_.skips) {
    optimizer.step();
  }
  optimizer_.made_step(/*keeps=*/averaged_before);
}

void KvstoreAdapter::update_send(const torch::Tensor&) {
  if (!is_running()) return;
  check_step();
  hold_back();
  optimizer_.step_by_halves();
  if (transfer_ && transfer_->has_states()) {
    leave();
    throw std::runtime_error("node '" + config_.self +
                             "' has joined a run with kvstore.update 'worker', where "
                             "update_send() cannot give the optimizer its state; accepted: step()");
  }
  if (merged() && now_.stage != Stage::exchanged) exchange_gradients();
  now_.in_halves = true;
  now_.before.clear();
  if (!by_servers_) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model_.trained_parameters)
    now_.before.push_back(parameter.detach().clone());
}

StepReport KvstoreAdapter::update_wait(const torch::Tensor& loss) {
  if (!is_running() || !std::exchange(now_.in_halves, false)) return end_step(loss);
  if (by_servers_ && !now_.dropped) {
    const at::NoGradGuard no_grad;
    PushTerms own = terms();
    own.optimizer = plain_step();
    for (std::size_t i = model_.trained.size(); i-- > 0;) {
      at::Tensor change = std::exchange(now_.before[i], {});
      change.sub_(model_.trained_parameters[i].detach());
      weights_->push(model_.trained[i], change, own);
    }
    exchange_weights();
  }
  return end_step(loss);
}

StepReport KvstoreAdapter::end_step(const torch::Tensor& loss) {
  StepReport report = std::exchange(now_.report, {});
  const bool ran = phase_ == Phase::running;
  const bool exchanged = now_.stage == Stage::exchanged;
  if (ran && exchanged) {
    endpoint_->local().steps.end_step(report, Steady::now());
    model_.buffers.take();
    const kvclient::ValueTraffic traffic = session_->client().traffic();
    report.bytes = traffic.received - now_.traffic_before.received;
    report.sent = traffic.sent - now_.traffic_before.sent;
    totals_.moved.received += report.bytes;
    totals_.moved.sent += report.sent;
    begin_at(now_.dropped ? step_ : step_ + 1);
  }
  if (report.outcome == Outcome::dropped)
    warn_at_times(totals_.dropped, "",
                  " steps of this node so far came too late: their gradients were dropped");
  if (report.outcome == Outcome::rejected)
    warn_at_times(
        totals_.not_finite, "",
        " steps of this node so far had gradients that are not finite: they did not count");
  const bool counted = ran && exchanged && report.outcome == Outcome::skipped;
  totals_.has_counted = totals_.has_counted || counted;
  if (counted && merged() && report.participants > 1) report.outcome = Outcome::averaged;
  if (counted && !merged()) report.outcome = Outcome::updated;
  if (report.outcome != Outcome::averaged) report.participants = 1;
  report.clock = clock_;
  now_.terms = steady_ ? last_terms_ : std::nullopt;
  now_.fired.assign(now_.fired.size(), false);
  now_.stage = Stage::open;
  now_.dropped = now_.in_halves = now_.skips = false;
  if (ran) tell_status(report, loss);
  last_report_ = report;
  return report;
}

void KvstoreAdapter::tell_status(const StepReport& report, const torch::Tensor& loss) {
  const TimePoint now = Steady::now();
  if (now - told_ < between_status_notes || phase_ == Phase::left) return;
  told_ = now;
  StatusNotes& notes = endpoint_->local().notes;
  notes.set("clock", nlohmann::json(clock_).dump());
  const bool has_stepped = report.clock > 0;
  notes.set("kvstore",
            nlohmann::json{{"rank", place_.rank},
                           {"size", place_.size},
                           {"outcome", has_stepped ? nlohmann::json(to_string(report.outcome))
                                                   : nlohmann::json(nullptr)},
                           {"waited_ms", static_cast<double>(report.waited.count()) / 1e6},
                           {"bytes_received", totals_.moved.received},
                           {"bytes_sent", totals_.moved.sent},
                           {"finishing", phase_ == Phase::finishing},
                           {"dropped", totals_.dropped},
                           {"not_finite", totals_.not_finite}}
                .dump());
  const double value = losses_.known(loss);
  if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
}

}  // namespace dpwa
