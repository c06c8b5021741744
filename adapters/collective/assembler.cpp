#include "adapters/collective/assembler.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "adapters/collective/attempt.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/gathering.h"
#include "adapters/collective/terms.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/log/log.h"
#include "dpwa/net/host_names.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto shortest_pause = 3ms;
constexpr auto longest_pause = 100ms;
constexpr auto between_looks_during_an_attempt = 50ms;
constexpr auto between_looks_for_newcomers = 500ms;
constexpr auto between_words_on_a_stranger = 60s;
constexpr auto patience_with_the_untaken = 3s;
constexpr milliseconds limit_of_an_attempt = 10s;

std::string names_of(const Config& config, const GroupMembers& membership) {
  std::string names;
  for (const auto& member : membership.members)
    names += (names.empty() ? "" : ", ") + config.nodes[member.place].name;
  return names;
}

}  // namespace

Assembler::Assembler(const Config& config, LocalProcess& local, NoticeBoard& board,
                     AdaptiveTimeout& patience)
    : config_(config),
      local_(local),
      board_(board),
      engine_(make_engine(engine_kind(config.collective.engine))),
      status_poller_(config, local, board, patience) {
  board_.change([this](GroupNotes& notes) { notes.engine = engine_->name(); });
  thread_ = start_background_thread(
      [this] { run_or_end("the thread that forms groups", [this] { work(); }); });
}

Assembler::~Assembler() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  drop_attempt();
}

void Assembler::seek(bool admits) {
  const MutexLock lock(mutex_);
  board_.change([](GroupNotes& notes) { notes.seeks = true; });
  task_ = Task::seek;
  admits_ = admits;
  formed_.reset();
  minority_.clear();
  stranger_.clear();
  problem_.clear();
  changed_.notify_all();
}

void Assembler::admit() {
  const MutexLock lock(mutex_);
  if (task_ != Task::rest) return;
  task_ = Task::admit;
  changed_.notify_all();
}

void Assembler::rest() {
  const MutexLock lock(mutex_);
  if (task_ == Task::admit && !formed_) task_ = Task::rest;
}

bool Assembler::hosts_admission() const {
  const auto members = board_.read().formed.members;
  const MutexLock lock(mutex_);
  return task_ == Task::admit && !members.empty() && members.front().place == config_.self_index();
}

bool Assembler::newcomers_wait() const {
  const MutexLock lock(mutex_);
  return newcomers_wait_;
}

std::uint64_t Assembler::formed() const {
  const MutexLock lock(mutex_);
  return formed_ ? formed_->membership.epoch : 0;
}

std::string Assembler::minority() const {
  const MutexLock lock(mutex_);
  return minority_;
}

std::string Assembler::stranger() const {
  const MutexLock lock(mutex_);
  return stranger_;
}

std::string Assembler::problem() const {
  const MutexLock lock(mutex_);
  if (missing_.empty()) return problem_;
  return problem_ + (problem_.empty() ? "" : "; ") + "missing: " + missing_;
}

std::optional<Assembler::Formed> Assembler::take(Duration limit,
                                                 const std::function<bool()>& given_up) {
  const auto until = SteadyClock::now() + limit;
  MutexLock lock(mutex_);
  while (!formed_ && SteadyClock::now() < until) {
    lock.unlock();
    if (given_up()) return std::nullopt;
    lock.lock();
    const auto next_look = SteadyClock::now() + 20ms;
    while (!formed_ && changed_.wait_until(lock, next_look)) {
    }
  }
  if (!formed_) return std::nullopt;
  task_ = Task::rest;
  newcomers_wait_ = false;
  return std::exchange(formed_, std::nullopt);
}

// Drops a new group that not all members have entered, because the new node has left again.
void Assembler::drop_untaken() {
  std::optional<Formed> dropped;  // ends outside of the lock
  const MutexLock lock(mutex_);
  if (!formed_ || task_ != Task::admit) return;
  const bool late = SteadyClock::now() - formed_at_ > patience_with_the_untaken;
  if (!late && !formed_->group->broken()) return;
  dropped.swap(formed_);
  task_ = Task::rest;
  newcomers_wait_ = false;
  failed_ = std::max(failed_, dropped->membership.epoch);
  const auto before = before_;
  board_.change([&before](GroupNotes& notes) { notes.formed = before; });
}

void Assembler::work() {
  name_thread("dpwa-groups");
  MutexLock lock(mutex_);
  Task last = Task::rest;
  while (!ends_) {
    const Task task = formed_ ? Task::rest : task_;
    const bool admits = admits_;
    lock.unlock();
    if (std::exchange(last, task) != task) status_poller_.expect_news();
    try {
      drop_untaken();
      if (task == Task::rest) {
        if (formed() == 0) drop_attempt();
        look_for_newcomers();
      } else {
        look_for_group(task, admits);
      }
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // such as no file descriptors for now
      tell_of_failure(error.what());
    }
    const TimePoint now = SteadyClock::now();
    TimePoint wakes = now + between_looks_for_newcomers;
    if (task != Task::rest)
      wakes = std::clamp<TimePoint>(status_poller_.next_turn(), now + shortest_pause,
                                    now + longest_pause);
    if (attempt_) wakes = now + shortest_pause;
    lock.lock();
    while (!ends_ && (formed_ ? Task::rest : task_) == task && changed_.wait_until(lock, wakes)) {
    }
  }
}

void Assembler::tell_of_failure(const std::string& what) {
  log(limiter_, what, LogLevel::warn, "collective", "cannot look for a group: " + what);
  const MutexLock lock(mutex_);
  problem_ = what;
}

// Only the first member does this, and only when a node is missing.
void Assembler::look_for_newcomers() {
  const GroupNotes notes = board_.read();
  const auto& members = notes.formed.members;
  const bool first = !members.empty() && members.front().place == config_.self_index();
  if (notes.seeks || !first || members.size() == config_.nodes.size()) return;
  status_poller_.expect_news();
  const auto views = status_poller_.look();
  tell_of_strangers(views);
  const bool wait = has_newcomers(views, config_.self_index());
  const MutexLock lock(mutex_);
  newcomers_wait_ = wait && task_ == Task::rest && !formed_;
}

void Assembler::tell_of_strangers(const std::vector<MemberView>& views) {
  for (const MemberView& view : views) {
    const bool comes = view.reach == MemberView::Reach::answers && view.notes.seeks;
    if (!comes || view.differs.empty()) continue;
    const TimePoint now = SteadyClock::now();
    const auto [told, first] = told_.try_emplace(view.name, now);
    if (!first && now - told->second < between_words_on_a_stranger) continue;
    told->second = now;
    log(LogLevel::warn, "collective",
        "'" + view.name + "' is not admitted because it differs: " + view.differs);
  }
}

void Assembler::look_for_group(Task task, bool admits) {
  harvest();
  if (formed() != 0) return;
  const TimePoint now = SteadyClock::now();
  if (attempt_ && now - looked_ < between_looks_during_an_attempt) return;
  looked_ = now;
  const std::size_t self = config_.self_index();
  auto views = status_poller_.look();
  NextGroup next = next_group(views, self, admits, failed_);
  if (is_new(next)) {  // what it votes for must not depend on views of a while ago
    status_poller_.expect_news();
    views = status_poller_.look();
    next = next_group(views, self, admits, failed_);
  }
  {
    const MutexLock lock(mutex_);
    if (task_ != task) return;
    minority_ = next.step == NextGroup::Step::minority ? next.why : "";
    missing_ = missing_in(views);
    stranger_ = stranger_in(views, self);
    // There is no node left to admit.
    const auto& members = views[self].notes.formed.members;
    const bool host = !members.empty() && members.front().place == self;
    if (task == Task::admit && host && next.step == NextGroup::Step::wait) task_ = Task::rest;
  }
  const bool newcomer = views[self].notes.formed.epoch == 0 || is_left_behind(views, self);
  if (next.step == NextGroup::Step::wait && attempt_ && !attempt_is_idle(views)) return;
  act(next, newcomer);
  harvest();
}

bool Assembler::is_new(const NextGroup& next) const {
  if (next.step == NextGroup::Step::wait) return false;
  if (next.step == NextGroup::Step::minority) return minority() != next.why;
  return !attempt_ || attempt_->next.group != next.group;
}

// Whether the group that this node is about to join has no host any more.
bool Assembler::attempt_is_idle(const std::vector<MemberView>& views) const {
  const MemberView& host = views[attempt_->next.host];
  if (attempt_->next.host == config_.self_index()) return true;
  if (host.reach != MemberView::Reach::answers) return host.reach == MemberView::Reach::refused;
  return host.notes.vote != attempt_->next.group && host.notes.formed != attempt_->next.group;
}

void Assembler::act(const NextGroup& next, bool newcomer) {
  if (next.step == NextGroup::Step::wait || next.step == NextGroup::Step::minority) {
    drop_attempt();
    return;
  }
  if (attempt_ && attempt_->next.group == next.group) return;
  drop_attempt();
  begin(next, newcomer);
}

void Assembler::begin(const NextGroup& next, bool newcomer) {
  const std::size_t self = config_.self_index();
  GroupOptions options;
  options.rank = *next.group.rank_of(self);
  options.size = static_cast<int>(next.group.members.size());
  options.epoch = next.group.epoch;
  options.members = next.group.hash();
  for (const auto& member : next.group.members)
    options.names.push_back(config_.nodes[member.place].name);
  options.own_address = net::addresses_now(peer_address(config_.nodes[self])).front();
  options.form_timeout = limit_of_an_attempt;
  // The watch decides whether a late rank is lost (Lateness in adaptive_timeout.h).
  options.timeout = std::chrono::hours(24);
  // From here on this node may be in that group, even if the next steps fail.
  board_.change([&](GroupNotes& notes) {
    notes.vote = next.group;
    notes.store_port = 0;
  });
  log(LogLevel::debug, "collective",
      std::string(next.step == NextGroup::Step::host ? "hosts" : "comes to") + " group " +
          std::to_string(next.group.epoch) + " of " + names_of(config_, next.group));
  auto attempt = std::make_shared<Attempt>();
  attempt->next = next;
  attempt->newcomer = newcomer;
  finish_aside([attempt, engine = engine_, options,
                host = net::addresses_now(peer_address(config_.nodes[next.host])).front()] {
    attempt->run(engine, options, host);
  });
  attempt_ = std::move(attempt);
  status_poller_.expect_news();
}

void Assembler::drop_attempt() {
  if (!attempt_) return;
  attempt_->stop.request_stop();
  log(LogLevel::debug, "collective",
      "abandons group " + std::to_string(attempt_->next.group.epoch) + " of " +
          names_of(config_, attempt_->next.group));
  failed_ = std::max(failed_, attempt_->next.group.epoch);
  attempt_.reset();
  status_poller_.expect_news();
  board_.change([](GroupNotes& notes) { notes.store_port = 0; });
}

// Takes the result of the attempt.
void Assembler::harvest() {
  if (!attempt_) return;
  std::unique_ptr<ProcessGroup> group;
  std::string problem;
  {
    const MutexLock lock(attempt_->mutex);
    if (attempt_->store_port != 0 && board_.read().store_port != attempt_->store_port) {
      board_.change([port = attempt_->store_port](GroupNotes& notes) { notes.store_port = port; });
    }
    if (!attempt_->done) return;
    group = std::move(attempt_->group);
    problem = attempt_->problem;
  }
  const auto attempt = std::exchange(attempt_, nullptr);
  status_poller_.expect_news();
  const GroupMembers membership = attempt->next.group;
  if (!group) {
    failed_ = std::max(failed_, membership.epoch);
    board_.change([](GroupNotes& notes) { notes.store_port = 0; });
    log(LogLevel::debug, "collective",
        "group " + std::to_string(membership.epoch) + " of " + names_of(config_, membership) +
            " did not form: " + problem);
    const MutexLock lock(mutex_);
    problem_ = problem;
    return;
  }
  const MutexLock lock(mutex_);
  auto before = before_;
  board_.change([&](GroupNotes& notes) {
    before = notes.formed;
    notes.formed = membership;
    notes.seeks = false;
    notes.lost.clear();
  });
  before_ = std::move(before);
  formed_at_ = SteadyClock::now();
  formed_ = Formed{membership, std::move(group), attempt->newcomer};
  if (!engine_->setting().empty())
    log(LogLevel::info, "collective", "engine " + engine_->name() + ": " + engine_->setting());
  changed_.notify_all();
}

}  // namespace dpwa::collective
