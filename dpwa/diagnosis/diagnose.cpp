#include "dpwa/diagnosis/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "dpwa/diagnosis/interval.h"
#include "dpwa/diagnosis/rules.h"

namespace dpwa::diagnosis {
namespace {

// In the order of Cause.
constexpr std::array<std::string_view, 17> cause_names{"gone",
                                                       "cut off",
                                                       "frozen",
                                                       "stalled",
                                                       "stolen processor time",
                                                       "too many nodes",
                                                       "other programs",
                                                       "limited processors",
                                                       "slow processor",
                                                       "slow program",
                                                       "disk",
                                                       "lossy link",
                                                       "slow link",
                                                       "one-way link",
                                                       "clipped peers",
                                                       "other step size",
                                                       "skewed data"};
static_assert(cause_names[static_cast<std::size_t>(Cause::skewed_data)] == "skewed data");

// The same of several processes is one finding.
Findings merged(const Findings& findings) {
  Findings all;
  for (const Finding& finding : findings) {
    const auto same = std::ranges::find_if(all, [&finding](const Finding& one) {
      return one.cause == finding.cause && one.evidence == finding.evidence &&
             one.advice == finding.advice;
    });
    if (same == all.end()) {
      all.push_back(finding);
    } else {
      same->where += ", " + finding.where;
    }
  }
  return all;
}

}  // namespace

std::string_view to_string(Cause cause) {
  return cause_names.at(static_cast<std::size_t>(cause));
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.095 ? "%.1f %%" : "%.0f %%", 100 * share);
  return text;
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

std::string named(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::vector<Finding> diagnose(std::span<const Observation> observations) {
  Findings findings;
  if (observations.size() < 2) return findings;
  const Interval interval = interval_of(observations);
  judge_processes(observations, interval, findings);
  judge_hosts(interval, findings);
  judge_links(interval, findings);
  judge_learning(interval, findings);
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::share);
  return merged(findings);
}

}  // namespace dpwa::diagnosis
