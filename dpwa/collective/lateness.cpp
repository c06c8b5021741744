#include "dpwa/collective/lateness.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "dpwa/base/plain_text.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t enough = 8;

}  // namespace

Duration before_looking(const UsualTime& waits) {
  if (waits.known() < enough) return 1s;
  return std::clamp<Duration>(waits.at_most(), 250ms, 2s);
}

Lateness::Verdict Lateness::judge(const std::vector<View>& views, Duration waited) {
  Verdict verdict;
  const auto lose = [&verdict](const View& view, const std::string& why) {
    if (!verdict.lost.empty()) return;
    verdict.lost = view.name;
    verdict.why = why;
  };
  for (const View& view : views) {
    if (!view.lost.empty()) lose(view, view.lost);
    if (!view.answers || view.waits) continue;
    if (options_.warn_after > Duration::zero() && waited >= options_.warn_after && !warned_)
      verdict.late.push_back(view.name);
    if (options_.hung_after > Duration::zero() && waited >= options_.hung_after)
      lose(view, "answers, but has not come for " + in_seconds(waited));
  }
  if (!verdict.late.empty()) warned_ = true;
  return verdict;
}

void Lateness::reset() {
  warned_ = false;
}

}  // namespace dpwa::collective
