#include <algorithm>
#include <ostream>

#include "bench/collective/engine_comparison.h"
#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {
namespace {

std::vector<double> medians_of(const EngineTimes& engine) {
  std::vector<double> medians;
  for (const auto& window : engine.times_us) medians.push_back(quantile(window, 0.5));
  return medians;
}

Json engine_of(const EngineComparison& measured, const EngineTimes& engine) {
  if (!engine.absent.empty()) return {{"name", engine.name}, {"absent", engine.absent}};
  const Range times = range_of(medians_of(engine));
  const auto rate = [&](double time_us) {
    return static_cast<double>(measured.bytes * measured.nodes) / 1e3 / time_us;
  };
  const Range rates{rate(times.max), rate(times.median), rate(times.min)};
  return {{"name", engine.name},
          {"setting", engine.setting},
          {"gb_per_s", rates.median},
          {"windows",
           {{"count", engine.times_us.size()},
            {"gb_per_s", json_of(rates)},
            {"allreduce_us", json_of(times)}}}};
}

// Throughput of one in units of the other's, window by window; null where one is absent.
Json ratio_of(const EngineComparison& measured, const char* name, const char* other) {
  const auto find = [&](const char* wanted) {
    return std::ranges::find_if(measured.engines, [&](const EngineTimes& engine) {
      return engine.name == wanted && engine.absent.empty();
    });
  };
  const auto one = find(name);
  const auto base = find(other);
  if (one == measured.engines.end() || base == measured.engines.end()) return nullptr;
  const auto times = medians_of(*one);
  const auto base_times = medians_of(*base);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(times.size(), base_times.size()); ++i)
    ratios.push_back(base_times[i] / times[i]);
  return json_of(range_of(ratios));
}

}  // namespace

Json engine_comparison_document(const EngineComparison& measured) {
  Json engines = Json::array();
  for (const EngineTimes& engine : measured.engines) engines.push_back(engine_of(measured, engine));
  return {{"kind", "engines"},
          {"bytes", measured.bytes},
          {"nodes", measured.nodes},
          {"engines", engines},
          {"ratio_mpi_to_gloo", ratio_of(measured, "mpi", "gloo")},
          {"noise", json_of(measured.noise)},
          {"settings", machine_settings()}};
}

void print_engine_comparison(const Json& document, std::ostream& out) {
  for (const Json& engine : document.at("engines")) {
    std::string name = engine.at("name");
    name.resize(std::max<std::size_t>(name.size(), 20), ' ');
    out << name;
    if (engine.contains("absent")) {
      out << "absent: " << engine.at("absent").get<std::string>() << '\n';
      continue;
    }
    const Json& range = engine.at("windows").at("allreduce_us");
    out << number_text(engine.at("gb_per_s"), 2) << " GB/s, "
        << time_text(range.at("median").get<double>()) << " an all-reduce ("
        << time_text(range.at("min").get<double>()) << " to "
        << time_text(range.at("max").get<double>()) << ")";
    const std::string setting = engine.at("setting");
    out << (setting.empty() ? "" : "; " + setting) << '\n';
  }
  const Json& ratio = document.at("ratio_mpi_to_gloo");
  if (!ratio.is_null())
    out << "mpi / gloo          " << number_text(ratio.at("median"), 2) << " ("
        << number_text(ratio.at("min"), 2) << " to " << number_text(ratio.at("max"), 2) << ")\n";
}

}  // namespace dpwa::bench
