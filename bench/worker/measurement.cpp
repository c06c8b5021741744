#include "bench/worker/measurement.h"

#include <algorithm>
#include <ostream>

#include "bench/measure/machine.h"
#include "bench/quantity.h"

namespace dpwa::bench {
namespace {

constexpr double shortest_window = 0.2;

double cpu_s_per_gb(const GroupWindow& window) {
  return window.bytes == 0 ? 0 : window.cpu_s / (static_cast<double>(window.bytes) / 1e9);
}

Json quantiles(const std::vector<Json>& reports, const char* key) {
  std::vector<double> values;
  for (const Json& report : reports) {
    const auto more = report.at(key).get<std::vector<double>>();
    values.insert(values.end(), more.begin(), more.end());
  }
  return {{"median", quantile(values, 0.5)}, {"p99", quantile(values, 0.99)}};
}

}  // namespace

Range Series::range(const std::function<double(const GroupWindow&)>& value) const {
  std::vector<double> values;
  for (const GroupWindow& window : windows) values.push_back(value(window));
  return range_of(values);
}

Measurement measure(std::vector<Series>& series, double seconds, std::ostream& progress) {
  const int windows = seconds >= 5 * shortest_window ? 5 : 3;
  const double length = seconds / windows;
  for (Series& one : series) one.group->run(std::min(length, shortest_window), false);
  Measurement result;
  NoiseWatch watch;
  for (int window = 1; window <= windows; ++window) {
    std::string line = "   window " + std::to_string(window) + "/" + std::to_string(windows);
    for (Series& one : series) {
      one.windows.push_back(one.group->run(length));
      watch.also_used(one.windows.back().cpu_s);
      line += "  " + one.name + " " + rate_text(one.windows.back().gb_per_s);
    }
    if (length * windows > 1) progress << line << std::endl;
  }
  double spread = 0;
  for (const Series& one : series) {
    const Range rates = one.range([](const GroupWindow& window) { return window.gb_per_s; });
    spread = std::max(spread, spread_of(rates));
  }
  result.seconds = length * windows;
  result.noise = watch.judge(spread);
  return result;
}

Json figures_of(const Series& series, const std::vector<Json>& reports) {
  std::uint64_t pulls = 0;
  double peak_kib = 0;
  double mapped_kib = 0;
  Json failed = Json::object();
  for (const GroupWindow& window : series.windows) {
    pulls += window.pulls;
    for (const auto& [outcome, count] : window.failed.items())
      failed[outcome] = failed.value(outcome, 0) + count.get<int>();
  }
  for (const Json& report : reports) {
    peak_kib = std::max(peak_kib, report.at("peak_rss_kib").get<double>());
    mapped_kib = std::max(mapped_kib, report.at("peers_mapped_kib").get<double>());
  }
  Json figures;
  figures["pulls"] = pulls;
  figures["failed"] = failed;
  figures["gb_per_s"] = series.range([](const GroupWindow& w) { return w.gb_per_s; }).median;
  figures["latency_us"] = quantiles(reports, "latency_us");
  const Json trainer = quantiles(reports, "trainer_latency_us");
  if (trainer.at("median") != 0) figures["trainer_latency_us"] = trainer;
  figures["cpu_s_per_gb"] = series.range(cpu_s_per_gb).median;
  figures["peak_rss_mib"] = peak_kib / 1024;
  figures["peers_mapped_mib"] = mapped_kib / 1024;
  return figures;
}

Json windows_of(const Series& series) {
  Json windows;
  windows["count"] = series.windows.size();
  windows["gb_per_s"] = json_of(series.range([](const GroupWindow& w) { return w.gb_per_s; }));
  windows["latency_us"] = json_of(series.range([](const GroupWindow& w) { return w.latency_us; }));
  windows["cpu_s_per_gb"] = json_of(series.range(cpu_s_per_gb));
  return windows;
}

Json json_of(const Range& range) {
  return {{"min", range.min}, {"median", range.median}, {"max", range.max}};
}

Json json_of(const Noise& noise) {
  return {{"noisy", !noise.reasons.empty()},
          {"spread", noise.spread},
          {"other_load", noise.other_load},
          {"steal", noise.steal},
          {"reasons", noise.reasons}};
}

void print_figures(const Json& figures, std::ostream& out) {
  const auto latency = [&](const char* key) {
    const Json& entry = figures.at(key);
    return time_text(entry.at("median")) + " median, " + time_text(entry.at("p99")) + " p99";
  };
  out << "  throughput        " << rate_text(figures.at("gb_per_s"));
  if (const auto windows = figures.find("windows"); windows != figures.end()) {
    const Json& range = windows->at("gb_per_s");
    out << " (" << rate_text(range.at("min")) << " to " << rate_text(range.at("max")) << " in "
        << windows->at("count") << " windows)";
  }
  out << ", " << figures.at("pulls") << " pulls\n";
  out << "  latency           " << latency("latency_us") << '\n';
  if (figures.contains("trainer_latency_us"))
    out << "  as trainer sees   " << latency("trainer_latency_us") << '\n';
  out << "  processor         " << number_text(figures.at("cpu_s_per_gb"), 3) << " s/GB\n";
  out << "  peak memory       " << number_text(figures.at("peak_rss_mib"), 1) << " MiB a node";
  if (const double mapped = figures.at("peers_mapped_mib"); mapped > 0)
    out << ", " << number_text(mapped, 1) << " of it mapped from peers";
  out << '\n';
}

void warn_when_noisy(const Noise& noise, std::ostream& err) {
  for (const std::string& reason : noise.reasons) err << "!! machine was noisy: " << reason << '\n';
}

}  // namespace dpwa::bench
