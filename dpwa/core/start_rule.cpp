#include "dpwa/core/start_rule.h"

#include <cmath>
#include <limits>

namespace dpwa {
namespace {

// A clock that is not finite ranks last, so that it cannot hide a sound one.
double rank(const StartView& view) {
  return std::isfinite(view.clock) ? view.clock : std::numeric_limits<double>::lowest();
}

// What the views say, own entry left out.
struct Survey {
  std::optional<std::size_t> ready;  // the best to pull from; the first of equals
  bool all_answered = true;
  bool first = true;  // no joining node comes before this one in file order
};

bool better(const StartView& one, const StartView& other) {
  if (one.failed_pulls != other.failed_pulls) return one.failed_pulls < other.failed_pulls;
  if (one.joined != other.joined) return other.joined;
  return rank(one) > rank(other);
}

Survey survey(const std::vector<StartView>& nodes, std::size_t self,
              const StartRuleOptions& options) {
  Survey result;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == self) continue;
    const StartView& view = nodes[i];
    switch (view.state) {
      case PeerStart::unknown:
      case PeerStart::unreachable:
        result.all_answered = false;
        break;
      case PeerStart::joining:
        if (i < self) result.first = false;
        break;
      case PeerStart::ready:
        if (view.failed_pulls >= options.failed_pulls) {
          result.all_answered = false;
        } else if (!result.ready || better(view, nodes[*result.ready])) {
          result.ready = i;
        }
        break;
      case PeerStart::refused:
        break;
    }
  }
  return result;
}

}  // namespace

StartDecision decide_start(const std::vector<StartView>& nodes, std::size_t self,
                           std::optional<double> resumed_clock, Duration elapsed,
                           const StartRuleOptions& options) {
  const Survey seen = survey(nodes, self, options);
  if (seen.ready) {
    const bool up_to_date = resumed_clock && rank(nodes[*seen.ready]) <= *resumed_clock + 1;
    if (up_to_date) return {StartAction::begin, 0};
    return {StartAction::pull_from, *seen.ready};
  }
  const bool first = seen.first || elapsed >= options.wait * options.joining_waits;
  const bool source = resumed_clock || first;
  const bool waited = seen.all_answered || elapsed >= options.wait;
  return {source && waited ? StartAction::begin : StartAction::wait, 0};
}

}  // namespace dpwa
