#include "adapters/collective/adaptive_timeout.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "dpwa/rules/flow_control.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t remembered = 64;
constexpr std::size_t enough = 8;

std::string seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

void AdaptiveTimeout::add(Window& window, Duration time) {
  window.push_back(time);
  if (window.size() > remembered) window.pop_front();
}

Duration AdaptiveTimeout::usual(const Window& window) {
  std::vector<Duration> times(window.begin(), window.end());
  const Duration middle = upper_median(times);
  for (Duration& time : times) time = time > middle ? time - middle : middle - time;
  return middle + 8 * upper_median(times);
}

void AdaptiveTimeout::waited(Duration time) {
  const MutexLock lock(mutex_);
  add(waits_, time);
}

void AdaptiveTimeout::heard_after(Duration time) {
  const MutexLock lock(mutex_);
  add(answers_, time);
}

Duration AdaptiveTimeout::before_looking() const {
  const MutexLock lock(mutex_);
  if (waits_.size() < enough) return 1s;
  return std::clamp<Duration>(usual(waits_), 100ms, 2s);
}

Duration AdaptiveTimeout::before_lost() const {
  if (lost_after_ > Duration::zero()) return lost_after_;
  const MutexLock lock(mutex_);
  if (answers_.empty()) return 2s;
  return std::clamp<Duration>(10 * usual(answers_), 2s, 30s);
}

Duration AdaptiveTimeout::counts_as_silent() const {
  return std::clamp<Duration>(before_lost() / 3, 100ms, 1s);
}

Lateness::Verdict Lateness::judge(const std::vector<View>& views, Duration waited,
                                  Duration silent_for) {
  Verdict verdict;
  const auto lose = [&verdict](const View& view, const std::string& why) {
    if (!verdict.lost.empty()) return;
    verdict.lost = view.name;
    verdict.why = why;
  };
  std::vector<std::string> refused;
  for (const View& view : views) {
    const auto silence = std::ranges::find(silent_, view.name, &Silence::name);
    if (view.answered) {
      if (silence != silent_.end()) silent_.erase(silence);
      if (view.waits) continue;
      if (options_.warn_after > Duration::zero() && waited >= options_.warn_after && !warned_)
        verdict.late.push_back(view.name);
      if (options_.hung_after > Duration::zero() && waited >= options_.hung_after)
        lose(view, "answers, but has not come for " + seconds(waited));
      continue;
    }
    // Refused twice: a single refusal may come from a machine that is short of resources.
    if (view.refused) {
      refused.push_back(view.name);
      if (std::ranges::find(refused_, view.name) != refused_.end())
        lose(view, "is no longer running");
    }
    if (silence == silent_.end()) {
      silent_.push_back({view.name, waited});
    } else if (waited - silence->since >= silent_for) {
      lose(view, "has not answered for " + seconds(waited - silence->since));
    }
  }
  refused_ = std::move(refused);
  if (!verdict.late.empty()) warned_ = true;
  return verdict;
}

void Lateness::reset() {
  silent_.clear();
  refused_.clear();
  warned_ = false;
}

}  // namespace dpwa::collective
