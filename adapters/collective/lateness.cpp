#include "adapters/collective/lateness.h"

#include <algorithm>
#include <cstdio>

namespace dpwa::collective {
namespace {

std::string seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

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
    // Refused twice: a connection may be refused once while a machine is short of something.
    if (view.refused) {
      refused.push_back(view.name);
      if (std::ranges::find(refused_, view.name) != refused_.end())
        lose(view, "is not running any more");
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
