#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "bench/measure/statistics.h"
#include "bench/worker/group.h"

namespace dpwa::bench {

// One thing measured, and its windows.
struct Series {
  std::string name;
  Group* group;
  std::vector<GroupWindow> windows;

  Range range(const std::function<double(const GroupWindow&)>& value) const;
};

struct Measurement {
  double seconds = 0;  // of the windows of one series
  Noise noise;         // spread: the worst of all series
};

// Measures every series for `seconds`, cut into windows that take turns: A B A B ..., so that a
// machine that drifts does so under all. A window that is not counted comes first. Says how far it
// is on `progress`.
Measurement measure(std::vector<Series>& series, double seconds, std::ostream& progress);

// The keys that all kinds of pulls have in common: pulls, failed, gb_per_s, latency_us,
// trainer_latency_us (when there is one), cpu_s_per_gb, peak_rss_mib.
Json figures_of(const Series& series, const std::vector<Json>& reports);
// The lowest, median and highest of the windows, by figure.
Json windows_of(const Series& series);
Json json_of(const Range& range);
Json json_of(const Noise& noise);

// One line a figure, for people.
void print_figures(const Json& figures, std::ostream& out);
void warn_when_noisy(const Noise& noise, std::ostream& err);

}  // namespace dpwa::bench
