#include "dpwa/collective/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_judgements(100);
// A rank that is late for this long is named in the log.
constexpr Duration warn_after = std::chrono::seconds(10);

}  // namespace

RankWatch::RankWatch(const Config& config, group::GroupNode& node, NoticeBoard& board,
                     UsualTime& waits, const GroupMembers& membership,
                     std::shared_ptr<StepGroup> group)
    : node_(node),
      board_(board),
      group_(std::move(group)),
      membership_(membership),
      lateness_({config.collective.hung_after, warn_after}),
      waits_(waits) {
  thread_ = start_background_thread(
      [this] { run_or_end("the thread that watches the group", [this] { work(); }); });
}

RankWatch::~RankWatch() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  note_wait(false);
}

void RankWatch::begin_wait(const std::string& what) {
  const MutexLock lock(mutex_);
  since_ = SteadyClock::now();
  if (!begun_) begun_ = since_;
  what_ = what;
}

void RankWatch::end_wait() {
  const MutexLock lock(mutex_);
  if (begun_) waits_.add(SteadyClock::now() - *begun_);
  begun_.reset();
  since_.reset();
}

std::string RankWatch::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

// The others look at it, as this node looks at what they say.
void RankWatch::note_wait(bool waits) {
  node_.set_waiting(waits);
  board_.change([&](GroupNotes& notes) {
    notes.waits = waits;
    notes.exchange.clear();
    notes.late.clear();
  });
}

void RankWatch::work() {
  name_thread("dpwa-watch");
  MutexLock lock(mutex_);
  std::optional<TimePoint> looked_at;  // the wait that was looked at last
  bool noted = false;
  while (!ends_) {
    const auto next_look = SteadyClock::now() + between_judgements;
    while (!ends_ && changed_.wait_until(lock, next_look)) {
    }
    if (ends_) return;
    const auto since = since_;
    const Duration waited = since ? SteadyClock::now() - *since : Duration::zero();
    const bool looks = since && waited >= before_looking(waits_);
    const bool waits = since.has_value();
    const std::string what = what_;
    lock.unlock();
    if (waits != noted) note_wait(waits);
    noted = waits;
    if (since != looked_at) lateness_.reset();
    looked_at = since;
    if (looks) look(what, waited);
    lock.lock();
  }
}

void RankWatch::look(const std::string& what, Duration waited) {
  const auto state = node_.state();
  std::vector<Lateness::View> views;
  for (const auto& member : membership_.members) {
    const auto peer = state.peers.find(member.id.name);
    if (peer == state.peers.end()) continue;  // this node
    const bool answers = peer->second.id == member.id && state.answers(peer->second);
    std::string lost = peer->second.why_gone(member.id);
    const bool is_out =
        state.view.number > membership_.view && state.view.member(member.id) == nullptr;
    if (lost.empty() && is_out) lost = "was left out by the others";
    views.push_back({.name = member.id.name,
                     .lost = std::move(lost),
                     .answers = answers,
                     .waits = answers && peer->second.said.waits});
  }
  std::vector<std::string> late;
  for (const auto& view : views) {
    if (!view.waits) late.push_back(view.name);
  }
  board_.change([&](GroupNotes& notes) {
    notes.exchange = what;
    notes.late = late;
  });
  const Lateness::Verdict verdict = lateness_.judge(views, waited);
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
  node_.give_up(verdict.lost);
  const auto lost = std::ranges::find(membership_.members, verdict.lost,
                                      [](const auto& member) { return member.id.name; });
  group_->abandon(static_cast<int>(lost - membership_.members.begin()));
}

}  // namespace dpwa::collective
