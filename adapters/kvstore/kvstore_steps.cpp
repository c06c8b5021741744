// The steps of KvstoreAdapter.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "adapters/common/backward_hooks.h"
#include "adapters/kvstore/kvstore_adapter.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/log/log.h"

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
// never had a gradient here, or that has none on any worker, counts not at all, so that nothing
// moves it. None: nothing need be pushed.
std::optional<at::Tensor> KvstoreAdapter::gradient_of(std::size_t index, PushTerms& terms) {
  const at::Tensor& parameter = trained_parameters_[index];
  const at::Tensor& gradient = parameter.grad();
  if (gradient.defined()) {
    used_[index] = true;
    return gradient;
  }
  if (config_.kvstore.type == KvstoreType::dist_async) return std::nullopt;
  // Others may wait for this push.
  if (!merged() || !used_[index] || !parameter.requires_grad() || averaged_) terms.weight = 0;
  return at::zeros_like(parameter);
}

// Called by the autograd engine: the gradient of a parameter is complete.
void KvstoreAdapter::fired(std::size_t index) {
  if (phase_ != Phase::running || held_back_ || dropped_) return;
  if (fired_[index] || averaged_) {
    in_backward_.clear();  // step() takes what has left
    refuse_second_pass();
  }
  if (accumulating_) return;
  fired_[index] = true;
  // In the first step the program may yet call average_gradients(), and new servers get the
  // optimizer's state before the first push, in step().
  const bool first = !last_terms_ || places_restored_;
  if (by_servers() && (first || !terms_ || terms_->of(index) == nullptr)) return;
  sent_ = true;
  push_gradient(index);
  in_backward_.add(parameters_[trained_[index]].first, trained_parameters_[index]);
}

// Sent to the servers' optimizer, or to be averaged.
void KvstoreAdapter::push_gradient(std::size_t index) {
  PushTerms own = terms();
  if (!by_servers()) return gradients_->push(index, own);
  own.optimizer = *terms_->of(index);
  const auto gradient = gradient_of(index, own);
  if (gradient) weights_->push(trained_[index], *gradient, own);
}

// Each worker's change counts in proportion, where each is an update of its own.
void KvstoreAdapter::push_buffers() {
  const double scale =
      merged() ? 1 : 1 / static_cast<double>(std::max<std::size_t>(1, place_.size));
  buffers_.push(*weights_, terms(), scale);
}

void KvstoreAdapter::exchange_gradients() {
  averaged_ = exchanged_ = true;
  if (!gradients_) make_gradients();
  gradients_->push_rest(terms(), checksum_of_weights());
  session_->client().at(step_, /*waiting=*/true);
  gradients_->pull(step_);
  if (!by_servers()) {
    push_buffers();
    weights_->pull_pushed(step_);
  }
  report_.participants = static_cast<unsigned>(session_->client().workers().size());
  ExchangeReport exchanged = gradients_->finish();
  if (!by_servers() && !exchanged.stopped) exchanged.add(weights_->finish(outs_));
  for (std::size_t i = 0; i < trained_.size() && exchanged.complete(); ++i)
    if (gradients_->is_there(i)) used_[i] = true;
  require_equal_weights(exchanged);
  settle(exchanged);
}

// All pushes of this step to the weights have been made, except those of the buffers.
void KvstoreAdapter::exchange_weights() {
  exchanged_ = true;
  push_buffers();
  session_->client().at(step_, /*waiting=*/true);
  weights_->pull_pushed(step_);
  report_.participants = static_cast<unsigned>(session_->client().workers().size());
  settle(weights_->finish(outs_));
}

void KvstoreAdapter::settle(const ExchangeReport& exchanged) {
  report_.waited += exchanged.waited;
  if (exchanged.stopped) {
    log(LogLevel::info, "kvstore", "told to stop while it waited for the servers");
    report_.made = false;
    return leave();
  }
  if (exchanged.left_out) return rejoin();
  if (exchanged.dropped) report_.outcome = Outcome::dropped;
  if (exchanged.buffers_not_finite && buffers_not_finite_++ % 100 == 0) {
    log(LogLevel::warn, "kvstore",
        "buffers of this node's model are not finite: their changes did not count, in " +
            std::to_string(buffers_not_finite_) + " steps so far");
  }
  if (exchanged.not_finite) {
    report_.outcome = Outcome::rejected;
    report_.refused = 1;
  }
}

// The gradients of this step belong to old weights and are dropped.
void KvstoreAdapter::rejoin() {
  dropped_ = true;
  report_.outcome = Outcome::dropped;
  // The program may be about to call its optimizer.
  if (!by_servers() && by_halves_) {
    leave();
    throw std::runtime_error(
        "node '" + config_.self + "' was left out, because " + session_->client().why_left_out() +
        ", and cannot continue with kvstore.update 'worker' and update_send(); "
        "accepted: step()");
  }
  log(LogLevel::warn, "kvstore",
      "left out, because " + session_->client().why_left_out() +
          ": takes the current weights and continues");
  ExchangeReport pulled;
  try {
    do {
      const std::uint64_t first = session_->join();
      if (by_servers()) step_ = first;
      pulled = by_servers() ? take_weights(first) : take_from_workers(has_weights_);
      report_.waited += pulled.waited;
    } while (pulled.left_out);
  } catch (...) {
    leave();
    throw;
  }
  if (pulled.stopped) {
    report_.made = false;
    leave();
  }
}

void KvstoreAdapter::hold_back() {
  if (!by_servers()) return;
  if (sent_) {
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
  if (!by_servers()) {
    // average_gradients() may wait for a worker that wants its state; later the last step tells.
    if (step_ == 0 && given_.empty()) last_optimizer_.emplace(optimizer, trained_parameters_);
  } else if (!sent_ && !held_back_) {
    terms_ = terms_of(optimizer, trained_parameters_);
  }
}

StepReport KvstoreAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  if (!is_running()) {
    if (report_.made) optimizer.step();
    return end_step(loss);
  }
  check_step();
  if (!by_servers()) {
    step_here(optimizer);
    return end_step(loss);
  }
  OptimizerTerms now = terms_of(optimizer, trained_parameters_);
  if (sent_ && *terms_ != now && !std::exchange(warned_of_change_, true)) {
    log(LogLevel::warn, "kvstore",
        "the optimizer's numbers changed after gradients had left in backward(): the change counts "
        "from the next step; accepted: set_optimizer() before backward()");
  }
  steady_ = last_terms_ == now;
  last_terms_ = now;
  if (!sent_) terms_ = std::move(now);
  if (std::exchange(places_restored_, false)) place_restored(optimizer);
  if (!dropped_ && phase_ == Phase::running) {
    for (std::size_t i = trained_.size(); i-- > 0;) {
      if (terms_->of(i) != nullptr && !weights_->has_pushed(trained_[i])) push_gradient(i);
    }
    exchange_weights();
  }
  return end_step(loss);
}

// Where several optimizers make the steps in turn, each with parameters of its own, none has the
// state of all. One that has more than the one before is no such case.
void KvstoreAdapter::note_parameters(const torch::optim::Optimizer& optimizer) {
  std::vector<const void*> all;
  for (const auto& group : optimizer.param_groups())
    for (const at::Tensor& parameter : group.params())
      all.push_back(parameter.unsafeGetTensorImpl());
  if (all == stepped_) return;
  const std::set<const void*> now(all.begin(), all.end());
  several_optimizers_ |= !std::ranges::all_of(
      stepped_, [&](const void* parameter) { return now.contains(parameter); });
  stepped_ = std::move(all);
}

// update: worker.
void KvstoreAdapter::step_here(torch::optim::Optimizer& optimizer) {
  struct Known {
    const torch::optim::Optimizer*& optimizer;
    ~Known() { optimizer = nullptr; }
  };
  stepping_ = &optimizer;
  const Known until_end{stepping_};
  note_parameters(optimizer);
  const bool averaged_before = averaged_;
  give_to(optimizer);
  if (!averaged_) exchange_gradients();
  if (phase_ == Phase::running && dropped_) {
    give_to(optimizer);
  } else if (phase_ == Phase::running) {
    optimizer.step();
  }
  last_optimizer_.reset();
  if (averaged_before) last_optimizer_.emplace(optimizer, trained_parameters_);
}

void KvstoreAdapter::update_send(const torch::Tensor&) {
  if (!is_running()) return;
  check_step();
  hold_back();
  by_halves_ = true;
  if (!given_.empty()) {
    leave();
    throw std::runtime_error("node '" + config_.self +
                             "' has joined a run with kvstore.update 'worker', where "
                             "update_send() cannot give the optimizer its state; accepted: step()");
  }
  if (merged() && !averaged_) exchange_gradients();
  in_halves_ = true;
  before_.clear();
  if (!by_servers()) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : trained_parameters_)
    before_.push_back(parameter.detach().clone());
}

StepReport KvstoreAdapter::update_wait(const torch::Tensor& loss) {
  if (!is_running() || !std::exchange(in_halves_, false)) return end_step(loss);
  if (by_servers() && !dropped_) {
    const at::NoGradGuard no_grad;
    PushTerms own = terms();
    own.optimizer = plain_step();
    for (std::size_t i = trained_.size(); i-- > 0;) {
      at::Tensor change = std::exchange(before_[i], {});
      change.sub_(trained_parameters_[i].detach());
      weights_->push(trained_[i], change, own);
    }
    exchange_weights();
  }
  return end_step(loss);
}

StepReport KvstoreAdapter::end_step(const torch::Tensor& loss) {
  StepReport report = std::exchange(report_, {});
  const bool ran = phase_ == Phase::running;
  if (ran && exchanged_) {
    buffers_.take();
    const kvclient::ValueTraffic traffic = session_->client().traffic();
    report.bytes = traffic.received - traffic_before_.received;
    report.sent = traffic.sent - traffic_before_.sent;
    moved_.received += report.bytes;
    moved_.sent += report.sent;
    begin_at(dropped_ ? step_ : step_ + 1);
  }
  if (report.outcome == Outcome::dropped && steps_dropped_++ % 100 == 0) {
    log(LogLevel::warn, "kvstore",
        std::to_string(steps_dropped_) +
            " steps of this node so far came too late: their gradients were "
            "dropped");
  }
  if (report.outcome == Outcome::rejected && not_finite_++ % 100 == 0) {
    log(LogLevel::warn, "kvstore",
        std::to_string(not_finite_) +
            " steps of this node so far had gradients that are not "
            "finite: they did not count");
  }
  const bool counted = ran && exchanged_ && report.outcome == Outcome::skipped;
  has_counted_ = has_counted_ || counted;
  if (counted && merged() && report.participants > 1) report.outcome = Outcome::averaged;
  if (counted && !merged()) report.outcome = Outcome::updated;
  if (report.outcome != Outcome::averaged) report.participants = 1;
  report.clock = clock_;
  terms_ = steady_ ? last_terms_ : std::nullopt;
  fired_.assign(fired_.size(), false);
  sent_ = averaged_ = exchanged_ = dropped_ = in_halves_ = false;
  if (ran) tell_status(report, loss);
  last_report_ = report;
  return report;
}

void KvstoreAdapter::tell_status(const StepReport& report, const torch::Tensor& loss) {
  const TimePoint now = Steady::now();
  if (now - told_ < between_status_notes || phase_ != Phase::running) return;
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
                           {"bytes_received", moved_.received},
                           {"bytes_sent", moved_.sent},
                           {"finishing", finishing_},
                           {"dropped", steps_dropped_},
                           {"not_finite", not_finite_}}
                .dump());
  if (loss.defined() && loss.numel() == 1 && loss.is_cpu()) {
    const double value = loss.item<double>();
    if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
  }
}

}  // namespace dpwa
