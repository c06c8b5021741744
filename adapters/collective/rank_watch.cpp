#include "adapters/collective/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/collective/gathering.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_questions(100);
constexpr milliseconds shortest_before_looking(250);
// A rank that is late for this long is named in the log.
constexpr Duration warn_after = std::chrono::seconds(10);

Lateness::View view_of(const std::string& name, const StatusAnswer& answer) {
  Lateness::View view;
  view.name = name;
  view.answered = answer.error.empty();
  view.refused = answer.nobody_listens;
  view.waits =
      view.answered && group_notes_in(nlohmann::json::parse(answer.json, nullptr, false), 0).waits;
  return view;
}

}  // namespace

RankWatch::RankWatch(const Config& config, LocalProcess& local, NoticeBoard& board,
                     AdaptiveTimeout& patience, const GroupMembers& membership,
                     std::shared_ptr<ProcessGroup> group)
    : config_(config),
      local_(local),
      board_(board),
      patience_(patience),
      group_(std::move(group)),
      membership_(membership),
      lateness_({config.collective.hung_after, warn_after}) {
  for (const auto& member : membership.members) {
    if (member.place != config.self_index()) others_.push_back(member.place);
  }
  thread_ = start_background_thread([this] {
    run_or_end("the thread that watches the group", [this] { work(); });
    const MutexLock lock(mutex_);
    ended_ = true;
  });
}

RankWatch::~RankWatch() {
  stop();
  thread_.join();
}

bool RankWatch::stopped() const {
  const MutexLock lock(mutex_);
  return ended_;
}

void RankWatch::stop() {
  {
    const MutexLock lock(mutex_);
    if (ends_) return;
    ends_ = true;
  }
  changed_.notify_all();
  board_.change([](GroupNotes& notes) {
    notes.waits = false;
    notes.exchange.clear();
    notes.late.clear();
  });
}

void RankWatch::begin_wait(const std::string& what) {
  const MutexLock lock(mutex_);
  since_ = SteadyClock::now();
  if (!begun_) begun_ = since_;
  what_ = what;
}

void RankWatch::end_wait() {
  const MutexLock lock(mutex_);
  if (begun_) patience_.waited(SteadyClock::now() - *begun_);
  begun_.reset();
  since_.reset();
}

std::string RankWatch::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

void RankWatch::work() {
  name_thread("dpwa-watch");
  MutexLock lock(mutex_);
  std::optional<TimePoint> looked_at;  // the wait that was looked at last
  bool noted = false;
  while (!ends_) {
    const auto next_question = SteadyClock::now() + between_questions;
    while (!ends_ && changed_.wait_until(lock, next_question)) {
    }
    if (ends_) return;
    const auto since = since_;
    const Duration waited = since ? SteadyClock::now() - *since : Duration::zero();
    const bool looks =
        since && waited >= std::max<Duration>(patience_.before_looking(), shortest_before_looking);
    // Noted before this node asks the others, because they then ask it, too.
    const bool waits = since.has_value();
    const std::string what = what_;
    if (waits != noted) {  // not once it is stopped: the next watch has its own
      board_.change([&](GroupNotes& notes) {
        notes.waits = waits;
        notes.exchange.clear();
        notes.late.clear();
      });
      noted = waits;
    }
    lock.unlock();
    if (since != looked_at) lateness_.reset();
    looked_at = since;
    try {
      if (looks) look(what, SteadyClock::now() - *since);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // such as no file descriptors for now
      log(limiter_, error.what(), LogLevel::warn, "collective",
          std::string("cannot ask the others: ") + error.what());
    }
    lock.lock();
  }
}

void RankWatch::look(const std::string& what, Duration waited) {
  const TimePoint asked = SteadyClock::now();
  const auto answers = ask_for_status(config_, local_, others_, patience_.of_a_look());
  std::vector<Lateness::View> views;
  for (std::size_t i = 0; i < others_.size(); ++i)
    views.push_back(view_of(config_.nodes[others_[i]].name, answers[i]));
  const bool all = std::ranges::all_of(views, &Lateness::View::answered);
  if (all) patience_.answered(SteadyClock::now() - asked);
  std::vector<std::string> late;
  for (const auto& view : views) {
    if (!view.waits) late.push_back(view.name);
  }
  {
    const MutexLock lock(mutex_);
    if (!ends_) {
      board_.change([&](GroupNotes& notes) {
        notes.exchange = what;
        notes.late = late;
      });
    }
  }
  const Lateness::Verdict verdict = lateness_.judge(views, waited, patience_.before_lost());
  const auto waited_ms = std::chrono::duration_cast<milliseconds>(waited).count();
  for (const std::string& name : verdict.late) {
    log(LogLevel::warn, "collective",
        "waiting for '" + name + "' since " + std::to_string(waited_ms) + " ms: " + what);
  }
  if (verdict.lost.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (!since_ || ends_) return;  // the exchange has ended meanwhile
    lost_ = "'" + verdict.lost + "' " + verdict.why;
  }
  const auto lost = std::ranges::find(views, verdict.lost, &Lateness::View::name);
  const std::size_t place = others_[static_cast<std::size_t>(lost - views.begin())];
  board_.change([place](GroupNotes& notes) { notes.lost.push_back(place); });
  group_->abandon(*membership_.rank_of(place));
}

}  // namespace dpwa::collective
