#include "dpwa/kvworker/worker_session.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "dpwa/base/stop_signal.h"
#include "dpwa/kvclient/client_options.h"
#include "dpwa/log/log.h"
#include "dpwa/net/local_process.h"

namespace dpwa::kvstore {
namespace {

using Steady = std::chrono::steady_clock;

constexpr auto look_every = std::chrono::milliseconds(100);
constexpr const char* waits_for = "waits_for";  // in the status of the node
constexpr auto before_a_note = std::chrono::seconds(1);
// The time after SIGTERM for an answer that is on its way, so that its step is completed.
constexpr auto grace = std::chrono::seconds(1);
constexpr auto leave_limit = std::chrono::milliseconds(500);
constexpr auto time_to_decide = std::chrono::seconds(4);  // some ballots of the servers

kvclient::StoreClientOptions options_of(const Config& config, std::uint64_t incarnation,
                                        std::shared_ptr<Security> security) {
  kvclient::StoreClientOptions options = kvclient::client_options(config, std::move(security));
  options.self.incarnation = incarnation;
  return options;
}

std::string milliseconds(Duration time) {
  return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
}

}  // namespace

std::string words_for_key(const std::string& key, const std::string& call) {
  const std::string words = "key '" + key + "'";
  return call.empty() ? words : words + " (all workers have to call " + call + " in each step)";
}

WorkerSession::WorkerSession(const Config& config, std::uint64_t incarnation,
                             std::shared_ptr<Security> security)
    : self_(config.self),
      start_wait_(config.kvstore.start_wait),
      lost_after_(config.kvstore.lost_after),
      servers_(config.kvstore.servers.size()),
      min_workers_(first_workers(config)),
      compression_(config.kvstore.compression.type),
      client_(options_of(config, incarnation, std::move(security))),
      wait_log_(client_, config.self) {}

void WorkerSession::check_refusal() const {
  const auto refusal = client_.refusal();
  if (refusal && refusal->is_for_good(lost_after_))
    throw std::runtime_error("node '" + self_ + "' is not admitted: " + refusal->problem);
}

bool WorkerSession::told_to_stop() const {
  return stop_signal::received() != 0 || broken_off_;
}

void WorkerSession::give_up_without_servers() {
  answered_ = Steady::now();
}

bool WorkerSession::servers_are_gone(TimePoint now) {
  if (!answered_) return false;
  if (client_.problems().size() < servers_) answered_ = now;
  return now - *answered_ >= start_wait_;
}

bool WorkerSession::gives_up(TimePoint now) {
  check_refusal();
  if (broken_off_) return true;
  if (told_to_stop()) {
    if (!stopping_) stopping_ = now;
    if (now - *stopping_ >= grace) return true;
  }
  return servers_are_gone(now);
}

bool WorkerSession::look_up(TimePoint began, const std::string& what) {
  const TimePoint now = Steady::now();
  if (gives_up(now)) return true;
  wait_log_.look(began, what, now);
  return false;
}

std::uint64_t WorkerSession::join() {
  const TimePoint began = Steady::now();
  const TimePoint until = began + start_wait_;
  client_.join();
  while (true) {
    const TimePoint now = Steady::now();
    if (const auto first = client_.wait_joined(std::min<TimePoint>(until, now + look_every)))
      return first_step_ = *first;
    const bool stopped = gives_up(now);
    if (!stopped) wait_log_.look_at_start(began, until, now);
    if (!stopped && now < until) continue;
    std::string reason = problems();
    if (stopped && told_to_stop()) {
      reason = "it was told to stop";
    } else if (reason.empty() && !client_.workers().empty()) {
      reason =
          "the servers answer, and have not decided on it; 'dpwa status --check' names whose vote "
          "they lack";
    } else if (reason.empty()) {
      reason =
          "the servers answer, and wait for the other servers or for workers; the first step "
          "waits for " +
          std::to_string(min_workers_) + " (kvstore.min_workers)";
    }
    throw std::runtime_error("node '" + self_ + "' does not take part after " +
                             milliseconds(now - began) + ": " + reason);
  }
}

void WorkerSession::leave() {
  const bool votes = finished_ && !told_to_stop();
  const Duration limit = votes ? 2 * lost_after_ + time_to_decide : Duration(leave_limit);
  const TimePoint until = Steady::now() + limit;
  do {
    client_.leave(std::min<TimePoint>(until, Steady::now() + look_every));
  } while (client_.takes_part() && Steady::now() < until && client_.problems().size() < servers_);
}

void WorkerSession::finish() {
  finished_ = true;
  client_.finish();
}

class WorkerSession::Note {
 public:
  explicit Note(WorkerSession& session) : session_(session) {}
  ~Note() {
    if (made_) session_.notes_->erase(waits_for);
  }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

  void look(TimePoint began) {
    if (session_.notes_ == nullptr || Steady::now() - began < before_a_note) return;
    session_.notes_->set(waits_for, nlohmann::json(session_.wait_log_.whom()).dump());
    made_ = true;
  }

 private:
  WorkerSession& session_;
  bool made_ = false;
};

std::optional<kvclient::Outcome> WorkerSession::wait(kvclient::Ticket ticket,
                                                     const std::string& what) {
  const TimePoint began = Steady::now();
  Note note(*this);
  while (true) {
    if (auto outcome = client_.wait(ticket, Steady::now() + look_every)) return outcome;
    note.look(began);
    look();
    if (look_up(began, what)) return std::nullopt;
  }
}

void WorkerSession::look() {
  if (!on_look_ || looking_) return;
  looking_ = true;
  try {
    on_look_();
  } catch (...) {
    looking_ = false;
    throw;
  }
  looking_ = false;
}

bool WorkerSession::pause(TimePoint began, const std::string& what) {
  std::this_thread::sleep_for(look_every / 10);
  return !look_up(began, what);
}

void WorkerSession::wait_created(kvclient::Ticket ticket, const std::string& key,
                                 const std::string& call) {
  const std::string what = words_for_key(key, call);
  const TimePoint began = Steady::now();
  Note note(*this);
  TimePoint until = began + start_wait_;
  while (true) {
    if (const auto outcome = client_.wait(ticket, Steady::now() + look_every)) {
      if (is_error(outcome->kind)) throw std::runtime_error(outcome->problem);
      return;
    }
    if (!client_.takes_part()) {
      log(LogLevel::warn, "kvstore",
          "left out before the keys were made, because this node was silent or hung: takes part "
          "again");
      join();
      until = Steady::now() + start_wait_;
    }
    note.look(began);
    const bool stopped = look_up(began, what);
    if (!stopped && Steady::now() < until) continue;
    throw std::runtime_error(
        "key '" + key + "' of node '" + self_ + "' was not made: " +
        (stopped ? "told to stop"
                 : "the first worker has not sent it within " + milliseconds(start_wait_) +
                       "; all workers " +
                       (call.empty() ? "need the same model" : "have to call " + call)));
  }
}

bool WorkerSession::wait_end() {
  const TimePoint began = Steady::now();
  Duration undecided{};  // a process that stood still did not wait
  while (!client_.wait_end(Steady::now() + look_every)) {
    const TimePoint now = Steady::now();
    if (gives_up(now)) return false;
    const bool none_trains = client_.workers().empty();
    if (none_trains || client_.problems().size() >= servers_) {
      wait_log_.look(began, "the final model", now);
    } else {
      wait_log_.look_at_end(began, now);
    }
    undecided = none_trains ? undecided + look_every : Duration::zero();
    if (undecided >= start_wait_) return false;
  }
  return true;
}

}  // namespace dpwa::kvstore
