#include "bench/measure/statistics.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <sstream>

#include "bench/quantity.h"

namespace dpwa::bench {
namespace {

constexpr double noisy_spread = 0.15;
constexpr double noisy_load = 0.10;
constexpr double noisy_steal = 0.02;

std::string percent(double share) {
  return number_text(100 * share, 0) + " %";
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(index, values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Range range_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {*min, quantile(values, 0.5), *max};
}

double spread_of(const Range& range) {
  return range.median == 0 ? 0 : (range.max - range.min) / range.median;
}

ProcessorTime parse_processor_time(std::string_view proc_stat, double ticks_per_second) {
  std::istringstream line{std::string(proc_stat.substr(0, proc_stat.find('\n')))};
  std::string name;
  // user nice system idle iowait irq softirq steal; guest times are part of user.
  std::array<double, 8> ticks{};
  if (!(line >> name) || name != "cpu") return {};
  for (double& field : ticks) {
    if (!(line >> field)) return {};
    field /= ticks_per_second;
  }
  ProcessorTime time;
  time.steal = ticks[7];
  time.busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  time.total = time.busy + time.steal + ticks[3] + ticks[4];
  return time;
}

ProcessorTime processor_time() {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_processor_time(text, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

Noise judge_noise(double spread, const ProcessorTime& before, const ProcessorTime& after,
                  double own) {
  Noise noise;
  noise.spread = spread;
  const double total = after.total - before.total;
  if (total > 0) {
    noise.steal = (after.steal - before.steal) / total;
    noise.other_load = std::max(0.0, (after.busy - before.busy - own) / total);
  }
  if (noise.spread > noisy_spread)
    noise.reasons.push_back("the windows differ by " + percent(noise.spread));
  if (noise.other_load > noisy_load)
    noise.reasons.push_back("other work took " + percent(noise.other_load) + " of the processors");
  if (noise.steal > noisy_steal)
    noise.reasons.push_back("the host took " + percent(noise.steal) + " of the processors");
  return noise;
}

}  // namespace dpwa::bench
