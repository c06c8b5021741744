// The steps of Worker.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvworker/worker.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/compared_steps.h"
#include "dpwa/rules/second_pass.h"

namespace dpwa::kvstore {
namespace {

using Steady = std::chrono::steady_clock;
using kvclient::PushTerms;

constexpr auto between_status_notes = std::chrono::milliseconds(100);

// The options of an SGD that takes off a change, times `scale`.
Bytes sgd_step(double scale) {
  OptimizerOptions options = default_options(OptimizerKind::sgd);
  options.learning_rate = scale;
  const OptionsBytes form = encode(options);
  return {form.begin(), form.end()};
}

// Of kvstore.update: server.
OptimizerTerms terms_of(const WorkerOptimizer& optimizer) {
  try {
    return optimizer.terms();
  } catch (const UnknownOptimizer& unknown) {
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

PushTerms Worker::terms() const {
  PushTerms terms;
  terms.step = step_;
  terms.weight = samples_;
  terms.merge = Merge::mean;
  return terms;
}

// What goes to the servers' optimizer. A parameter without a gradient counts as zeros for the
// others that have one, because a round waits for all workers. One that is frozen, or that has
// never had a gradient here, or that has none on any worker, or whose step is skipped, counts not
// at all, so that nothing moves it. None: nothing need be pushed.
std::optional<Lent> Worker::gradient_of(std::size_t trained, PushTerms& terms) {
  if (model_.has_gradient(trained) && !now_.skips) {
    used_[trained] = true;
    return model_.gradient(trained);
  }
  if (config_.kvstore.type == KvstoreType::dist_async) return std::nullopt;
  // Others may wait for this push.
  if (!merged() || !used_[trained] || model_.is_frozen(trained) || now_.skips ||
      now_.stage == Stage::exchanged)
    terms.weight = 0;
  return zeros(model_.trained_value(trained).spec.bytes());
}

void Worker::fired(std::size_t trained) {
  if (phase_ != Phase::running || held_back_ || now_.dropped) return;
  if (now_.fired[trained] || now_.stage == Stage::exchanged) {
    model_.forget_sent();  // step() takes what has left
    refuse_second_pass();
  }
  if (accumulating_) return;
  now_.fired[trained] = true;
  // In the first step the program may yet call average_gradients(), and new servers get the
  // optimizer's state before the first push, in step().
  const bool first = !last_terms_ || places_restored_;
  if (by_servers_ && (first || !now_.terms || now_.terms->of(trained) == nullptr)) return;
  now_.stage = Stage::sent;
  push_gradient(trained);
  model_.note_sent(trained);
}

// Sent to the servers' optimizer, or to be averaged.
void Worker::push_gradient(std::size_t trained) {
  PushTerms own = terms();
  if (!by_servers_) return gradients_->push(trained, own);
  own.optimizer = *now_.terms->of(trained);
  if (auto gradient = gradient_of(trained, own))
    weights_->push(model_.trained()[trained], *std::move(gradient), own);
}

// Each worker's change counts in proportion, where each is an update of its own.
void Worker::push_buffers() {
  const double scale =
      merged() ? 1 : 1 / static_cast<double>(std::max<std::size_t>(1, place_.size));
  PushTerms own = terms();
  own.optimizer = sgd_step(scale);
  for (std::size_t i = model_.parameters(); i < model_.values().size(); ++i)
    weights_->push(i, model_.change(i), own);
}

void Worker::exchange_gradients() {
  const StepScope counted(endpoint_->local().steps, StepClock::Part::publish, Steady::now);
  now_.stage = Stage::exchanged;
  if (!gradients_) make_gradients();
  // With update: server the servers have the weights.
  const bool compares = !by_servers_ && compares_weights_at(step_);
  gradients_->push_rest(terms(), compares ? std::optional(checksum_of(model_)) : std::nullopt);
  session_->client().at(step_, /*waiting=*/true);
  gradients_->pull(step_);
  if (!by_servers_) {
    push_buffers();
    weights_->pull_pushed(step_);
  }
  now_.report.participants = static_cast<unsigned>(session_->client().workers().size());
  ExchangeReport exchanged = gradients_->finish();
  if (!by_servers_ && !exchanged.stopped) exchanged.add(weights_->finish(model_));
  for (std::size_t i = 0; i < model_.trained().size() && exchanged.complete(); ++i)
    if (gradients_->is_there(i)) used_[i] = true;
  require_equal_weights(exchanged);
  settle(exchanged);
}

// A difference never heals, and spoils the model. A worker whose numbers did not count in this step
// has nothing to compare.
void Worker::require_equal_weights(const ExchangeReport& exchanged) {
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
void Worker::exchange_weights() {
  const StepScope counted(endpoint_->local().steps, StepClock::Part::publish, Steady::now);
  now_.stage = Stage::exchanged;
  push_buffers();
  session_->client().at(step_, /*waiting=*/true);
  weights_->pull_pushed(step_);
  now_.report.participants = static_cast<unsigned>(session_->client().workers().size());
  settle(weights_->finish(model_));
}

void Worker::settle(const ExchangeReport& exchanged) {
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
void Worker::rejoin() {
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

void Worker::hold_back() {
  if (!by_servers_) return;
  if (now_.stage == Stage::sent) {
    throw std::logic_error(
        "gradients of this step have left in backward(): call average_gradients() or update_send() "
        "in every step, or use kvstore.update: worker");
  }
  held_back_ = true;
}

void Worker::average_gradients() {
  if (!is_running()) return;
  check_step();
  hold_back();
  if (merged()) exchange_gradients();
}

void Worker::set_optimizer(const WorkerOptimizer& optimizer) {
  if (!is_running()) return;
  if (!by_servers_) {
    // average_gradients() may wait for a worker that wants its state; later the last step tells.
    if (step_ == 0 && !transfer_->has_states()) optimizer_.keep(optimizer);
  } else if (now_.stage != Stage::sent && !held_back_) {
    now_.terms = terms_of(optimizer);
  }
}

StepReport Worker::step(WorkerOptimizer& optimizer, const Loss& loss, bool skips) {
  if (skips && is_running()) hold_back();
  now_.skips = skips;
  if (!is_running()) {
    if (now_.report.made && !now_.skips) optimizer.step();
    return end_step(loss);
  }
  check_step();
  if (!by_servers_) {
    step_here(optimizer);
    return end_step(loss);
  }
  OptimizerTerms now = terms_of(optimizer);
  const bool sent = now_.stage == Stage::sent;
  if (sent && *now_.terms != now && !std::exchange(totals_.warned_of_change, true)) {
    log(LogLevel::warn, "kvstore",
        "the optimizer's numbers changed after gradients had left in backward(): the change counts "
        "from the next step; accepted: set_optimizer() before backward()");
  }
  steady_ = last_terms_ == now;
  last_terms_ = now;
  if (!sent) now_.terms = std::move(now);
  if (std::exchange(places_restored_, false)) states_->place_restored(optimizer, used_);
  if (!now_.dropped && phase_ == Phase::running) {
    for (std::size_t i = model_.trained().size(); i-- > 0;) {
      if (now_.terms->of(i) != nullptr && !weights_->has_pushed(model_.trained()[i]))
        push_gradient(i);
    }
    exchange_weights();
  }
  return end_step(loss);
}

// update: worker.
void Worker::step_here(WorkerOptimizer& optimizer) {
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

void Worker::update_send() {
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
  if (by_servers_) model_.remember();
}

StepReport Worker::update_wait(const Loss& loss) {
  if (!is_running() || !std::exchange(now_.in_halves, false)) return end_step(loss);
  if (by_servers_ && !now_.dropped) {
    PushTerms own = terms();
    own.optimizer = sgd_step(1);
    for (const std::size_t each : model_.trained() | std::views::reverse)
      weights_->push(each, model_.change(each), own);
    exchange_weights();
  }
  return end_step(loss);
}

StepReport Worker::end_step(const Loss& loss) {
  StepReport report = std::exchange(now_.report, {});
  const bool ran = phase_ == Phase::running;
  const bool exchanged = now_.stage == Stage::exchanged;
  if (ran && exchanged) {
    endpoint_->local().steps.end_step(report, Steady::now());
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

void Worker::tell_status(const StepReport& report, const Loss& loss) {
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
  const double value = loss ? loss() : std::nan("");
  if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
}

}  // namespace dpwa::kvstore
