#include "dpwa/rules/start_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/lineage.h"

namespace dpwa {
namespace {

// Two clocks that differ by at most this count as equal.
constexpr double level_clocks = 1;

// A clock that is not finite ranks last, so that it cannot hide a sound one.
double rank(double clock) {
  return std::isfinite(clock) ? clock : std::numeric_limits<double>::lowest();
}

bool has_weights(const StartView& view) {
  return view.state == PeerStart::waiting || view.state == PeerStart::ready;
}

// The view of one node on all others. Own entry left out.
class Survey {
 public:
  Survey(const std::vector<StartView>& nodes, std::size_t self,
         const std::optional<StartWeights>& own, const StartRuleOptions& options)
      : nodes_(nodes), self_(self), own_(own), options_(options) {}

  bool usable(std::size_t i) const {
    return i != self_ && has_weights(nodes_[i]) && nodes_[i].failed_pulls < options_.failed_pulls &&
           nodes_[i].taken_over < options_.taken_over;
  }

  // Nodes that joined count only where this node has no weights of this start, and none of the file
  // gives any.
  bool counts(std::size_t i) const {
    if (!usable(i)) return false;
    if (!nodes_[i].joined) return true;
    if (own_ && !own_->resumed) return false;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      const bool first = !nodes_[other].joined && usable(other);
      if (first && nodes_[other].failed_pulls <= nodes_[i].failed_pulls) return false;
    }
    return true;
  }

  bool somebody_trains() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].state == PeerStart::ready && counts(i)) return true;
    return false;
  }

  // The best to pull from among those in `state` whose weights are to be preferred to the own; the
  // first of equals.
  std::optional<std::size_t> source(PeerStart state) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].state != state || !counts(i) || !preferred(nodes_[i])) continue;
      if (!best || better(nodes_[i], nodes_[*best])) best = i;
    }
    return best;
  }

  // Whether weights from there are older than those of this node's checkpoint.
  bool gives_up(std::size_t peer) const {
    return own_ && own_->resumed && rank(nodes_[peer].clock) < own_->clock;
  }

  // Every other node of the file has given a definite answer.
  bool all_answered() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const StartView& view = nodes_[i];
      if (i == self_ || view.joined || view.state == PeerStart::refused) continue;
      if (view.state != PeerStart::joining && !usable(i)) return false;
    }
    return true;
  }

  bool all_level() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const StartView& view = nodes_[i];
      if (i == self_ || view.joined || view.state == PeerStart::refused) continue;
      const bool level = usable(i) && view.lineage == own_->lineage &&
                         std::abs(rank(view.clock) - own_->clock) <= level_clocks;
      if (!level) return false;
    }
    return true;
  }

  // Nodes of the file that come before this one and could bring the weights as well.
  int earlier() const {
    int count = 0;
    for (std::size_t i = 0; i < std::min(self_, nodes_.size()); ++i)
      count += nodes_[i].state == PeerStart::joining && !nodes_[i].joined ? 1 : 0;
    return count;
  }

  std::size_t running() const {
    std::size_t count = 1;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      count += i != self_ && (nodes_[i].state == PeerStart::joining || usable(i)) ? 1 : 0;
    return count;
  }

 private:
  bool better(const StartView& one, const StartView& other) const {
    if (ranks_by_age(one) && one.lineage != other.lineage)
      return is_elder(report_of(one), report_of(other));
    const std::size_t count = reports(one.lineage), other_count = reports(other.lineage);
    if (one.state == PeerStart::ready && count != other_count) return count > other_count;
    if (one.failed_pulls != other.failed_pulls) return one.failed_pulls < other.failed_pulls;
    if (rank(one.clock) != rank(other.clock)) return rank(one.clock) > rank(other.clock);
    return one.state == PeerStart::waiting && one.lineage < other.lineage;
  }

  bool ranks_by_age(const StartView& view) const {
    return options_.listing == Listing::by_seeds && view.state == PeerStart::ready;
  }

  static LineageReport report_of(const StartView& view) { return {view.lineage, rank(view.clock)}; }

  // How many of the other nodes report this lineage. Of the file alone: one process may join under
  // many names.
  std::size_t reports(std::uint64_t lineage) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const StartView& view = nodes_[i];
      const bool answers = i != self_ && !view.joined && has_weights(view) &&
                           view.failed_pulls < options_.failed_pulls;
      count += answers && view.lineage == lineage ? 1 : 0;
    }
    return count;
  }

  bool preferred(const StartView& view) const {
    if (!own_) return true;
    if (view.lineage == own_->lineage) {
      if (view.state == PeerStart::ready && (view.together || !own_->resumed)) return false;
      return rank(view.clock) > own_->clock + level_clocks;
    }
    if (ranks_by_age(view)) return is_elder(report_of(view), {own_->lineage, own_->clock});
    const std::size_t count = reports(view.lineage), with_own = reports(own_->lineage) + 1;
    if (view.state == PeerStart::ready && count != with_own) return count > with_own;
    if (rank(view.clock) != own_->clock) return rank(view.clock) > own_->clock;
    return view.lineage < own_->lineage;
  }

  const std::vector<StartView>& nodes_;
  const std::size_t self_;
  const std::optional<StartWeights>& own_;
  const StartRuleOptions& options_;
};

// When a node without weights brings its own, if no node has weights to take over. `earlier` nodes
// come before it. Each node has its own moment, all within three quarters of the wait, so that the
// last quarter remains for taking the weights over.
Duration time_to_bring(int earlier, std::size_t nodes, Duration wait) {
  const auto count = static_cast<Duration::rep>(std::max<std::size_t>(1, nodes));
  return wait / 2 + wait * earlier / (4 * count);
}

}  // namespace

StartDecision decide_start(const std::vector<StartView>& nodes, std::size_t self,
                           const std::optional<StartWeights>& own, Duration elapsed,
                           const StartRuleOptions& options) {
  DPWA_INVARIANT(self < nodes.size(), "the own node is one of those that start", self,
                 nodes.size());
  const Survey survey(nodes, self, own, options);
  const bool over = elapsed >= options.start_wait;
  const bool pulls = elapsed < options.limit;
  StartDecision begin{StartAction::begin, 0};
  if (survey.running() < options.min_nodes)
    begin.action = over ? StartAction::give_up : StartAction::wait;

  if (pulls && survey.somebody_trains()) {
    const auto peer = survey.source(PeerStart::ready);
    if (!peer) return begin;
    // Those that have not answered yet may be of this node's lineage.
    const bool too_soon = !over && survey.gives_up(*peer) && !survey.all_answered();
    return {too_soon ? StartAction::wait : StartAction::pull_from, *peer};
  }
  const auto waiting = survey.source(PeerStart::waiting);
  if (pulls && waiting) return {StartAction::pull_from, *waiting};
  const bool looks_around =
      options.listing == Listing::by_seeds && nodes.size() == 1 && elapsed < options.start_wait / 2;
  const bool all_answered = survey.all_answered() && !looks_around;
  if (!own) {
    const int earlier = survey.earlier();
    const bool due = (all_answered && earlier == 0) ||
                     elapsed >= time_to_bring(earlier, nodes.size(), options.start_wait);
    if (options.listing != Listing::joins) return {due ? StartAction::bring : StartAction::wait, 0};
    return {over ? StartAction::give_up : StartAction::wait, 0};
  }
  if (over || (all_answered && survey.all_level())) return begin;
  return {StartAction::wait, 0};
}

Duration next_moment(Duration elapsed, std::size_t nodes, const StartRuleOptions& options) {
  for (int earlier = 0; earlier <= static_cast<int>(nodes); ++earlier) {
    const Duration brings = time_to_bring(earlier, nodes, options.start_wait);
    if (brings > elapsed) return brings;
  }
  for (const Duration end : {options.start_wait, options.limit})
    if (end > elapsed) return end;
  return Duration::max();
}

}  // namespace dpwa
