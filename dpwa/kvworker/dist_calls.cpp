// The calls of DistStore that are under way, and their waits.
#include <algorithm>
#include <chrono>
#include <utility>

#include "dpwa/kvworker/dist_store.h"
#include "dpwa/kvworker/error.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {

using kvclient::Outcome;
using kvclient::Ticket;
using SteadyClock = std::chrono::steady_clock;

namespace {

// How often a call that waits checks whether this worker still takes part.
constexpr auto between_looks = std::chrono::milliseconds(100);

// A value begins with version 1, before the first update.
std::uint64_t updates_of(const Outcome& outcome) {
  return std::max<std::uint64_t>(outcome.version, 1) - 1;
}

}  // namespace

// --- of the store

TimePoint DistStore::next_look() const {
  if (*broken_off_) throw KVStoreError("worker " + config_.self + ": the wait was interrupted");
  return SteadyClock::now() + between_looks;
}

void DistStore::computes(bool computes) {
  client_->at(clock_, !computes);
}

Outcome DistStore::wait(Ticket ticket, const std::string& what) {
  auto outcome = client_->wait(ticket, SteadyClock::now());
  if (!outcome) {
    const TimePoint began = SteadyClock::now();
    computes(false);
    while (!(outcome = client_->wait(ticket, next_look()))) {
      if (!client_->takes_part()) take_part_again();
      wait_log_->look(began, what, SteadyClock::now());
    }
    computes(true);
  }
  if (outcome->left_out) left_out_ = true;
  return *std::move(outcome);
}

bool DistStore::join_until(TimePoint until) {
  const TimePoint began = SteadyClock::now();
  while (!client_->wait_joined(std::min<TimePoint>(until, next_look()))) {
    const auto refusal = client_->refusal();
    if (refusal && refusal->is_for_good(config_.kvstore.lost_after))
      throw KVStoreError("worker " + config_.self + " is not admitted: " + refusal->problem);
    if (SteadyClock::now() >= until) return false;
    wait_log_->look_at_start(began, until, SteadyClock::now());
  }
  return true;
}

void DistStore::check_takes_part() {
  forget_abandoned();
  if (left_out_ || !client_->takes_part()) take_part_again();
}

// The others have gone on. The steps of this worker continue from theirs.
void DistStore::take_part_again() {
  const std::string why = client_->why_left_out();
  if (left_out_log_.pass(why, SteadyClock::now())) {
    log(LogLevel::warn, "kvstore",
        "worker '" + config_.self + "' was left out, because " + why +
            ", and takes part again with the current values");
  }
  computes(false);
  pushed_in_step_.clear();
  for (bool aligned = false; !aligned;) {
    client_->join();
    join_until(TimePoint::max());
    left_out_ = false;
    aligned = true;
    for (auto& [key, value] : values_) {
      for (const auto& push : value.pushes) look_at(*push);
      const Ticket ticket = client_->pull(key, 0, 0, any_version);
      std::optional<Outcome> outcome;
      while (!outcome && client_->takes_part()) outcome = client_->wait(ticket, next_look());
      if (!outcome) abandoned_.push_back(ticket);
      aligned = outcome && !outcome->left_out;
      if (!aligned) break;
      if (is_error(outcome->kind)) continue;  // the next push or pull of the key reports it
      value.next_step = outcome->next_step;
      clock_ = std::max(clock_, value.next_step);
    }
  }
  left_out_ = false;
  computes(true);
}

void DistStore::forget_abandoned() {
  std::erase_if(abandoned_, [&](Ticket ticket) {
    return client_->wait(ticket, SteadyClock::now()).has_value();
  });
}

void DistStore::end(PushUnderWay& push, Outcome outcome) {
  if (outcome.left_out) left_out_ = true;
  const bool refused = is_error(outcome.kind);
  const bool dropped = outcome.left_out || outcome.kind == AnswerKind::dropped ||
                       outcome.kind == AnswerKind::not_finite;
  if (dropped) {
    ++dropped_;
    const char* const fate =
        outcome.left_out ? " was not answered, and may have counted: this worker was left out"
        : outcome.kind == AnswerKind::not_finite ? " did not count: it is not finite"
                                                 : " did not count: its step was over";
    const auto held_back =
        outcome.left_out ? left_out_log_.pass("a push", SteadyClock::now()) : std::optional(0U);
    if (held_back) {
      log(LogLevel::warn, "kvstore",
          specs_.call_of("push", push.key) + ", step " + std::to_string(push.step) + fate +
              since_words(*held_back));
    }
  }
  Value& value = values_.at(push.key);
  // A refused push does not count as a step.
  if (refused && value.next_step == push.step + 1) value.next_step = push.step;
  push.outcome = std::move(outcome);
  push.memory = {};
}

bool DistStore::look_at(PushUnderWay& push) {
  if (push.outcome) return true;
  auto outcome = client_->wait(push.ticket, SteadyClock::now());
  if (outcome) end(push, *std::move(outcome));
  return push.outcome.has_value();
}

void DistStore::reap(Value& value) {
  std::optional<std::string> refused;
  while (!value.pushes.empty() && look_at(*value.pushes.front())) {
    Outcome& outcome = *value.pushes.front()->outcome;
    if (is_error(outcome.kind) && !refused) refused = std::exchange(outcome.problem, {});
    value.pushes.pop_front();
  }
  if (refused && !refused->empty()) throw KVStoreError(*refused);
}

void DistStore::confirm(PushUnderWay& push) {
  if (push.confirmed || push.wants_value || !rules_.merged) return;
  push.confirmed = true;
  abandoned_.push_back(client_->pull(push.key, push.step + 1, 0, any_version));
}

void DistStore::finish(const std::shared_ptr<PushUnderWay>& push) {
  if (look_at(*push)) return;
  confirm(*push);
  Outcome outcome = wait(
      push->ticket, "the push of key " + push->key.text() + ", step " + std::to_string(push->step));
  if (!push->outcome) end(*push, std::move(outcome));
}

void DistStore::finish_pushes() {
  for (auto& [key, value] : values_) {
    while (!value.pushes.empty()) {
      finish(value.pushes.front());
      reap(value);
    }
  }
}

std::uint64_t DistStore::pull_one(const Wanted& wanted, int priority,
                                  std::optional<Ticket> ticket) {
  Value& value = values_.at(wanted.key);
  const auto give_up = [&] { abandoned_.push_back(*ticket); };
  for (;; ticket.reset()) {
    check_takes_part();
    if (!ticket) ticket = client_->pull(wanted.key, value.next_step, priority);
    std::optional<Outcome> outcome = client_->wait(*ticket, SteadyClock::now());
    if (!outcome) computes(false);
    const TimePoint began = SteadyClock::now();
    while (!outcome) {
      outcome = client_->wait(*ticket, next_look());
      if (outcome) break;
      if (!client_->takes_part()) take_part_again();
      wait_log_->look(began,
                      "the pull of key " + wanted.key.text() + " before its step " +
                          std::to_string(value.next_step),
                      SteadyClock::now());
      try {
        reap(value);  // it would wait for ever for a push that was refused
      } catch (const KVStoreError&) {
        give_up();
        computes(true);
        throw;
      }
    }
    computes(true);
    if (outcome->left_out) {
      left_out_ = true;
      continue;
    }
    if (is_error(outcome->kind)) throw KVStoreError(outcome->problem);
    if (wanted.fill(outcome->values)) return updates_of(*outcome);
  }
}

// --- of the calls

bool DistPush::done() {
  bool all = true;
  for (const auto& push : pushes_) {
    if (store_.look_at(*push)) continue;
    store_.confirm(*push);
    all = false;
  }
  return all;
}

Versions DistPush::wait() {
  Versions versions;
  std::string refused;
  for (const auto& push : pushes_) {
    store_.finish(push);
    if (is_error(push->outcome->kind) && refused.empty())
      refused = std::exchange(push->outcome->problem, {});
    versions.push_back(updates_of(*push->outcome));
  }
  if (!refused.empty()) throw KVStoreError(refused);
  return versions;
}

DistPull::DistPull(DistStore& store, const std::vector<Wanted>& wanted, int priority,
                   const std::vector<std::shared_ptr<PushUnderWay>>& pushes)
    : store_(store), priority_(priority) {
  for (const Wanted& each : wanted) {
    Part part;
    part.wanted = each;
    const auto push = std::ranges::find(pushes, each.key, &PushUnderWay::key);
    if (push != pushes.end()) {
      part.push = *push;
    } else {
      part.ticket = store.client_->pull(each.key, store.values_.at(each.key).next_step, priority);
    }
    parts_.push_back(std::move(part));
  }
}

DistPull::~DistPull() {
  for (const Part& part : parts_) {
    if (part.ticket) store_.abandoned_.push_back(*part.ticket);
  }
}

bool DistPull::done() {
  return std::ranges::all_of(parts_, [&](Part& part) {
    if (part.version) return true;
    if (part.push) return store_.look_at(*part.push);
    if (part.ticket) {
      part.outcome = store_.client_->wait(*part.ticket, SteadyClock::now());
      if (part.outcome) part.ticket.reset();
    }
    return part.outcome.has_value();
  });
}

void DistPull::wait_for_push(Part& part) {
  store_.finish(part.push);
  const Outcome& outcome = *part.push->outcome;
  if (is_error(outcome.kind)) {
    const std::string problem = std::exchange(part.push->outcome->problem, {});
    throw KVStoreError(problem);
  }
  // A push that did not count comes without the value.
  part.version = part.wanted.fill(outcome.values)
                     ? updates_of(outcome)
                     : store_.pull_one(part.wanted, priority_, std::nullopt);
}

Versions DistPull::wait() {
  Versions versions;
  for (Part& part : parts_) {
    if (!part.version && part.push) {
      wait_for_push(part);
    } else if (!part.version && part.outcome && !part.outcome->left_out &&
               !is_error(part.outcome->kind) && part.wanted.fill(part.outcome->values)) {
      part.version = updates_of(*part.outcome);
    } else if (!part.version) {
      part.version = store_.pull_one(part.wanted, priority_, std::exchange(part.ticket, {}));
    }
    part.outcome.reset();
    versions.push_back(*part.version);
  }
  return versions;
}

}  // namespace dpwa::kvstore
