#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/diagnosis/rules.h"

namespace dpwa::diagnosis {
namespace {

constexpr double much_clipped = 0.2;  // of the pulls
constexpr double least_clipped = 5;
constexpr std::uint64_t learnt_pulls = 100;  // before them clipping is usual
constexpr std::size_t least_losses = 4;
constexpr double other_data = 1.6;  // ratio of the mean losses
constexpr double always = 1.25;     // ratio in each observation
constexpr double least_difference = 0.1;
constexpr double much_farther = 2;  // from the mean model than most others
constexpr double steady = 0.6;      // data pulls a model one way, large steps throw it every way

// A bound that honest nodes exceed is one that many nodes find exceeded.
void judge_clipping(const Interval& interval, Findings& findings) {
  std::vector<std::string> names;
  std::size_t pulling = 0;
  double clipped = 0, pulls = 0;
  for (const auto& [name, activity] : interval.active) {
    if (activity.pulls_ok < least_clipped || activity.last.pulls_ok < learnt_pulls) continue;
    ++pulling;
    if (activity.clipped < std::max(least_clipped, much_clipped * activity.pulls_ok)) continue;
    names.push_back(name);
    clipped += activity.clipped;
    pulls += activity.pulls_ok;
  }
  if (names.empty() || 2 * names.size() < pulling) return;
  findings.push_back({Cause::clipped_peers, named(names), 0.25,
                      percent(clipped / pulls) +
                          " of the parameters that they blended were farther away than the "
                          "firewall's bound, and counted in part",
                      "if the nodes are honest, set gossip.firewall.distance: warn, or lower the "
                      "learning rate; else look at the node whose parameters are distant"});
}

using Measures = std::vector<double> Activity::*;  // of each observation

// Of the measures of the others in the same observation, the two in the middle; none: not known of
// two others.
struct Usual {
  double low = 0;
  double high = 0;
};
std::optional<Usual> usual_of(Measures measures, const Interval& interval, const std::string& but,
                              std::size_t at) {
  std::vector<double> values;
  for (const auto& [name, activity] : interval.active) {
    const std::vector<double>& all = activity.*measures;
    if (name != but && at < all.size() && std::isfinite(all[at])) values.push_back(all[at]);
  }
  if (values.size() < 2) return std::nullopt;
  std::ranges::sort(values);
  return Usual{values[(values.size() - 1) / 2], values[values.size() / 2]};
}

// How many times as far from the mean model as most others a node is, at least; 0: not known. What
// it learns from turns its steps, their size takes it away.
double times_as_far(const Interval& interval, const std::string& name, const Activity& activity) {
  double times = std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; at < activity.to_mean.size(); ++at) {
    const auto usual = usual_of(&Activity::to_mean, interval, name, at);
    const double own = activity.to_mean[at];
    if (!usual || !std::isfinite(own) || !(usual->high > 0)) continue;
    times = std::min(times, own / usual->high);
  }
  return std::isfinite(times) ? times : 0;
}

// The mean ratio of the losses of a node to those of the others, where it is on one side in each
// observation.
struct LossRatio {
  double own = 0;
  double usual = 0;
};
std::optional<LossRatio> different_loss(const Interval& interval, const std::string& name,
                                        const Activity& activity) {
  LossRatio sum;
  std::size_t higher = 0, lower = 0, count = 0;
  for (std::size_t at = 0; at < activity.losses.size(); ++at) {
    const double own = activity.losses[at];
    const auto usual = usual_of(&Activity::losses, interval, name, at);
    if (!usual || !std::isfinite(own)) continue;
    ++count;
    sum.own += own;
    sum.usual += std::clamp(own, usual->low, usual->high);
    higher += own >= always * usual->high ? 1 : 0;
    lower += own * always <= usual->low ? 1 : 0;
  }
  if (count < least_losses || (higher != count && lower != count)) return std::nullopt;
  sum.own /= static_cast<double>(count);
  sum.usual /= static_cast<double>(count);
  return sum;
}

void judge_data(const Interval& interval, Findings& findings) {
  for (const auto& [name, activity] : interval.active) {
    if (!activity.last.trains || activity.steps == 0) continue;
    const auto loss = different_loss(interval, name, activity);
    if (!loss) continue;
    const double ratio = std::max(loss->own, loss->usual) / std::min(loss->own, loss->usual);
    if (!(ratio >= other_data) || std::abs(loss->own - loss->usual) < least_difference) continue;
    char evidence[128];
    std::snprintf(evidence, sizeof evidence, "its loss is %.3g, and that of most others %.3g",
                  loss->own, loss->usual);
    const double times = times_as_far(interval, name, activity);
    // One of n nodes that is far away is n - 1 times as far from the mean as each other one.
    const auto others = static_cast<double>(interval.active.size() - 1);
    const bool is_steady = activity.steadiness >= steady;  // not where that is not known
    if (times >= std::min(much_farther, 0.75 * others) && !is_steady) {
      char distance[96];
      std::snprintf(distance, sizeof distance, ", and it is %.3g times as far from the mean model",
                    times);
      findings.push_back({Cause::other_steps, name, 0.2, std::string(evidence) + distance,
                          "compare its learning rate, optimizer and batch size with those of the "
                          "others, then its data"});
      continue;
    }
    findings.push_back({Cause::skewed_data, name, 0.2, evidence,
                        "compare its data with those of the others (--split, labels, "
                        "preprocessing), and its learning rate; with skewed data use a smaller "
                        "factor or more pulls"});
  }
}

}  // namespace

void judge_learning(const Interval& interval, Findings& findings) {
  judge_clipping(interval, findings);
  judge_data(interval, findings);
}

}  // namespace dpwa::diagnosis
