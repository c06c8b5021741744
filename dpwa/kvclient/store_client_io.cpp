// The part of StoreClient that runs on its I/O thread.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/log/log.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::kvclient {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto between_ticks = std::chrono::milliseconds(50);
// How long a frame that is no longer needed may take before its connection is closed.
constexpr auto patience_with_writes = std::chrono::milliseconds(500);

}  // namespace

void StoreClient::arrived(const kvstore::MemberId& from, std::uint64_t tag,
                          kvstore::Message message) {
  io_thread_.check();
  if (stopped_) return;
  engine_.receive(from, tag, std::move(message), SteadyClock::now());
  // At once: a call that is over has no target for values any more.
  handle_events();
  pump_soon();
}

// Once for all messages that have come with one read.
void StoreClient::pump_soon() {
  if (std::exchange(pumps_soon_, true)) return;
  asio::post(io_, [this] {
    pumps_soon_ = false;
    pump();
  });
}

bool StoreClient::is_read(const kvstore::SliceId& slice, std::uint64_t step) const {
  return std::ranges::any_of(links_, [&](const auto& link) { return link->writes(slice, step); });
}

void StoreClient::written() {
  io_thread_.check();
  if (!operations_.holds_memory()) return;
  operations_.release([this](const auto& slice, auto step) { return is_read(slice, step); });
  pump();
}

void StoreClient::connected(const std::string& server) {
  io_thread_.check();
  if (stopped_) return;
  engine_.connected(server);
  pump();
}

// Servers that still read pushes from this memory notice the change and do not count them.
void StoreClient::take_memory_back() {
  for (const AlignedBuffer& memory : shared_) {
    memory.file()->begin_write();
    memory.file()->end_write();
  }
}

std::span<std::byte> StoreClient::target_of(const kvstore::Answer& answer) {
  io_thread_.check();
  if (stopped_ || answer.epoch != engine_.epoch().number) return {};
  const bool is_pull = answer.kind == kvstore::AnswerKind::value;
  return operations_.target(is_pull ? Operations::Kind::pull : Operations::Kind::push, answer.slice,
                            answer.step);
}

void StoreClient::left_out() {
  joined_.reset();
  take_memory_back();
  for (const auto& link : links_) {
    link->drop_requests();
    link->stop_landing();
  }
  operations_.leave_out([this](const auto& slice, auto step) { return is_read(slice, step); });
}

void StoreClient::run_over(const kvstore::WorkerEngine::RunOver& event) {
  left_out();
  const MutexLock lock(mutex_);
  first_step_.reset();
  workers_.clear();
  over_ = "worker '" + options_.self.name + "' cannot continue: " + event.problem;
}

void StoreClient::renumbered(std::uint64_t incarnation) {
  log(LogLevel::warn, "kvstore",
      "a former process of worker '" + options_.self.name +
          "' seems to have started later than this one: the clock of this machine was set back, or "
          "is behind; takes a later number");
  LocalProcess& local = introduce(incarnation);
  for (const auto& link : links_) link->reconnect_as(local);
  const MutexLock lock(mutex_);
  incarnation_ = incarnation;
}

void StoreClient::note_refusal(Refusal::Reason reason, std::string problem) {
  const TimePoint now = SteadyClock::now();
  const MutexLock lock(mutex_);
  const bool same = refusal_ && refusal_->reason == reason && refusal_->problem == problem;
  // Other reasons end the process, which says so.
  if (reason == Refusal::Reason::name_taken)
    log(limiter_, problem, LogLevel::warn, "kvstore", "not admitted yet: " + problem);
  refusal_ = Refusal{reason, std::move(problem), same ? refusal_->first : now, now};
}

// A server repeats a refusal at each connection.
void StoreClient::forget_old_refusal(TimePoint now) {
  const MutexLock lock(mutex_);
  const bool old = refusal_ && refusal_->reason == Refusal::Reason::name_taken &&
                   now - refusal_->last >= 2 * kvstore::connect_time + kvstore::longest_pause;
  if (old) refusal_.reset();
}

// A worker that has taken part goes on with the other servers.
void StoreClient::note_rejections() {
  if (engine_.epoch().number != 0) return;
  for (const auto& link : links_) {
    if (link->rejected())
      note_refusal(Refusal::Reason::rejected, "server '" + link->name() + "': " + link->problem());
  }
}

void StoreClient::handle_events() {
  for (auto& event : engine_.take_events()) {
    std::visit(
        [&](auto& content) {
          using Content = std::decay_t<decltype(content)>;
          if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Joined>) {
            joined_ = content.first_step;
            const MutexLock lock(mutex_);
            refusal_.reset();
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::AtEnd>) {
            out_ = false;
            const MutexLock lock(mutex_);
            none_trains_ = true;
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::LeftOut>) {
            out_ = true;
            left_out();
            const MutexLock lock(mutex_);
            left_out_again_ = true;
            first_step_.reset();
            none_trains_ = false;
            why_left_out_ = content.snapshot == 0
                                ? "this node was silent or hung"
                                : "the servers were started again, from their snapshot " +
                                      std::to_string(content.snapshot);
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::RunOver>) {
            run_over(content);
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Renumbered>) {
            renumbered(content.incarnation);
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Pushed>) {
            for (const auto& link : links_) link->drop(content.slice, content.step);
            operations_.handle(content, is_read(content.slice, content.step));
          } else if constexpr (std::is_same_v<Content, kvstore::WorkerEngine::Refused>) {
            const bool settings = content.kind == kvstore::AnswerKind::other_settings;
            note_refusal(settings ? Refusal::Reason::settings : Refusal::Reason::name_taken,
                         std::move(content.problem));
          } else {
            operations_.handle(content);
          }
        },
        event);
  }
}

void StoreClient::pump() {
  io_thread_.check();
  if (stopped_) return;
  handle_events();
  for (auto& message : engine_.take(SteadyClock::now())) {
    const auto link =
        std::ranges::find_if(links_, [&](const auto& each) { return each->name() == message.to; });
    if (link != links_.end()) (*link)->send(message.tag, std::move(message.message));
  }
  auto done = operations_.take_done();
  if (engine_.epoch().number != told_epoch_) {
    // Another server may send an answer that the link of an earlier one is still reading.
    for (const auto& link : links_) link->stop_landing();
    tell_epoch();
  }
  const MutexLock lock(mutex_);
  for (auto& [ticket, outcome] : done) done_.emplace(ticket, std::move(outcome));
  takes_part_ = engine_.takes_part();
  if (joined_) first_step_ = std::exchange(joined_, std::nullopt);
  uses_memory_ = std::ranges::any_of(links_, [](const auto& link) { return link->uses_memory(); });
  traffic_ = {};
  for (const auto& link : links_) {
    traffic_.sent += link->traffic().sent;
    traffic_.received += link->traffic().received;
  }
  if (!awaited_ || done_.contains(*awaited_) || !over_.empty()) changed_.notify_all();
}

void StoreClient::tell_epoch() {
  using Kind = kvstore::WorkerChange::Kind;
  const kvstore::Epoch& epoch = engine_.epoch();
  note_gone(epoch, SteadyClock::now());
  // One that came to a run under way, or that had ended, with a step that has not been made yet.
  const auto ending = [this](const kvstore::WorkerEntry& worker) {
    const bool made_none = worker.first_step > 0 && worker.first_step >= engine_.clock();
    return made_none ? Kind::no_step : Kind::lost;
  };
  for (const kvstore::WorkerChange& change : changes_.look(epoch, ending)) {
    const std::string& name = change.worker.id.name;
    if (told_epoch_ == 0 || name == options_.self.name) continue;
    const bool lost = change.kind == Kind::lost;
    const char* what = " has left";
    if (change.kind == Kind::came) what = " takes part from now on";
    if (change.kind == Kind::done) what = " is done, and waits for the others";
    if (change.kind == Kind::no_step) what = " no longer takes part; it has made no step";
    if (lost)
      what =
          " was left out: it was silent, hung while others waited, or ended before its first step, "
          "as with other settings (its log says which)";
    log(lost ? LogLevel::warn : LogLevel::info, "kvstore", "worker '" + name + "'" + what);
  }
  const MutexLock lock(mutex_);
  workers_ = epoch.workers;
  left_ = epoch.left;
  told_epoch_ = epoch.number;
}

// Workers that were left out, and servers that are down or do not answer.
void StoreClient::note_gone(const kvstore::Epoch& epoch, TimePoint now) {
  const MutexLock lock(mutex_);
  const auto has_left = [&](const kvstore::MemberId& worker) {
    return epoch.is_at_end(worker) ||
           std::ranges::find(epoch.left, worker.name) != epoch.left.end();
  };
  const auto note = [&](const std::string& name, bool gone) DPWA_REQUIRES(mutex_) {
    if (gone) {
      gone_since_.try_emplace(name, now);
    } else {
      gone_since_.erase(name);
    }
  };
  for (const kvstore::WorkerEntry& worker : workers_)
    note(worker.id.name, epoch.worker(worker.id.name) == nullptr && !has_left(worker.id));
  for (const kvstore::WorkerEntry& worker : epoch.workers) note(worker.id.name, false);
  for (const auto& link : links_) {
    const auto place = epoch.server(link->name());
    const bool down =
        epoch.number != 0 && place && epoch.servers[*place].state == kvstore::ServerState::down;
    note(link->name(), down || !link->problem().empty());
  }
}

void StoreClient::tick() {
  io_thread_.check();
  if (stopped_) return;
  const TimePoint now = SteadyClock::now();
  for (const auto& link : links_) {
    link->look();
    if (link->in_transfer()) engine_.transfer(link->name(), now);
  }
  engine_.tick(now);
  if (operations_.holds_memory()) {
    for (const auto& link : links_) link->break_off(now - patience_with_writes);
  }
  // Before the first epoch a server has nothing to say.
  if (engine_.epoch().number > 0) {
    for (const auto& link : links_) link->pass(between_ticks, options_.longest_silence);
  }
  note_gone(engine_.epoch(), now);
  note_rejections();
  forget_old_refusal(now);
  std::vector<std::string> problems;
  for (const auto& link : links_) {
    if (!link->problem().empty())
      problems.push_back("server '" + link->name() + "': " + link->problem());
  }
  {
    const MutexLock lock(mutex_);
    problems_ = std::move(problems);
  }
  pump();
  ticks_.expires_after(between_ticks);
  ticks_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

}  // namespace dpwa::kvclient
