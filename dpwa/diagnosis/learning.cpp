#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

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

// Of the losses of the others in the same observation, the two in the middle; none: not known of
// two others.
struct UsualLoss {
  double low = 0;
  double high = 0;
};
std::optional<UsualLoss> usual_loss(const Interval& interval, const std::string& but,
                                    std::size_t at) {
  std::vector<double> losses;
  for (const auto& [name, activity] : interval.active) {
    if (name != but && at < activity.losses.size() && std::isfinite(activity.losses[at]))
      losses.push_back(activity.losses[at]);
  }
  if (losses.size() < 2) return std::nullopt;
  std::ranges::sort(losses);
  return UsualLoss{losses[(losses.size() - 1) / 2], losses[losses.size() / 2]};
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
  std::size_t higher = 0, lower = 0;
  for (std::size_t at = 0; at < activity.losses.size(); ++at) {
    const double own = activity.losses[at];
    const auto usual = usual_loss(interval, name, at);
    if (!usual || !std::isfinite(own)) return std::nullopt;
    sum.own += own;
    sum.usual += std::clamp(own, usual->low, usual->high);
    higher += own >= always * usual->high ? 1 : 0;
    lower += own * always <= usual->low ? 1 : 0;
  }
  const std::size_t count = activity.losses.size();
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
    findings.push_back({Cause::skewed_data, name, 0.2, evidence,
                        "compare its data with those of the others (--split, labels, "
                        "preprocessing); with skewed data use a smaller factor or more pulls"});
  }
}

}  // namespace

void judge_learning(const Interval& interval, Findings& findings) {
  judge_clipping(interval, findings);
  judge_data(interval, findings);
}

}  // namespace dpwa::diagnosis
