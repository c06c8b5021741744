#include "bench/compare/compare.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace dpwa::bench {
namespace {

// What tells one measurement from another, in the order of a label.
constexpr std::array identities = {
    "kind",  "name",      "model",      "bytes",    "nodes",          "pulling_nodes",
    "mode",  "transport", "encoding",   "security", "checksum",       "blend",
    "dtype", "threads",   "parameters", "tensors",  "pulls_per_node",
};

// A figure at the end of a path of keys, and which way is better.
struct KnownFigure {
  std::string_view key;
  bool more_is_better;
  std::string_view window_key;  // where its range is in "windows"; empty: itself an object of one
};
constexpr std::array known_figures = {
    KnownFigure{"gb_per_s", true, "gb_per_s"},
    KnownFigure{"latency_us", false, "latency_us"},
    KnownFigure{"trainer_latency_us", false, ""},
    KnownFigure{"cpu_s_per_gb", false, "cpu_s_per_gb"},
    KnownFigure{"peak_rss_mib", false, ""},
    KnownFigure{"memory_beyond_parameters_mib", false, ""},
    KnownFigure{"ratio_to_raw", true, ""},
    KnownFigure{"latency_ratio_to_raw", false, ""},
    KnownFigure{"ratio_to_hand_written", true, ""},
    KnownFigure{"send_us", false, ""},
    KnownFigure{"wait_us", false, ""},
    KnownFigure{"step_us", false, "step_us"},
    KnownFigure{"ratio_to_ddp", false, ""},
    KnownFigure{"choose_ns", false, "choose_ns"},
    KnownFigure{"bytes_per_node", false, ""},
};

std::string word_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string identity_of(const Json& object) {
  std::string label;
  for (const char* key : identities) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_structured()) continue;
    label += (label.empty() ? "" : " ") + std::string(key) + "=" + word_of(*found);
  }
  return label;
}

std::optional<Range> range_in(const Json& object) {
  if (!object.is_object() || !object.contains("min") || !object.contains("max"))
    return std::nullopt;
  return Range{object.at("min"), object.value("median", 0.0), object.at("max")};
}

// The number of a figure: itself, or the median of an object of quantiles.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_object()) return std::nullopt;
  const auto median = value.find("median");
  if (median == value.end() || !median->is_number()) return std::nullopt;
  return median->get<double>();
}

void collect(const Json& value, const std::string& label, std::vector<Figure>& figures) {
  if (value.is_array()) {
    for (const Json& entry : value) collect(entry, label, figures);
  }
  if (!value.is_object()) return;
  const std::string own = identity_of(value);
  const std::string here = label.empty() || own.empty() ? label + own : label + " / " + own;
  const auto windows = value.find("windows");
  for (const KnownFigure& known : known_figures) {
    const auto found = value.find(known.key);
    const auto number = found == value.end() ? std::nullopt : number_of(*found);
    if (!number) continue;
    auto range = range_in(*found);
    if (windows != value.end() && !known.window_key.empty() && windows->contains(known.window_key))
      range = range_in(windows->at(known.window_key));
    figures.push_back({here + ": " + std::string(known.key), *number, range, known.more_is_better});
  }
  for (const auto& [key, entry] : value.items()) {
    // What ran beside is measured against, not held to what it was.
    const bool plain =
        key == "windows" || key == "settings" || key == "noise" || key == "raw" || key == "ddp" ||
        std::ranges::any_of(known_figures,
                            [&](const KnownFigure& known) { return known.key == key; });
    if (plain || !entry.is_structured()) continue;
    collect(entry, entry.is_object() ? here + (here.empty() ? "" : " ") + key : here, figures);
  }
}

bool overlap(const Range& a, const Range& b) {
  return a.min <= b.max && b.min <= a.max;
}

}  // namespace

std::vector<Figure> figures_in(const Json& document) {
  std::vector<Figure> figures;
  collect(document, "", figures);
  return figures;
}

std::vector<Comparison> compare(const Json& before, const Json& after, double threshold) {
  std::vector<Comparison> rows;
  const auto old_figures = figures_in(before);
  for (const Figure& now : figures_in(after)) {
    const auto old = std::ranges::find(old_figures, now.label, &Figure::label);
    if (old == old_figures.end() || old->value <= 0 || now.value <= 0) continue;
    Comparison row{now.label, old->value, now.value};
    row.ratio = now.more_is_better ? now.value / old->value : old->value / now.value;
    const bool within_noise = now.range && old->range && overlap(*now.range, *old->range);
    row.worse = row.ratio < threshold && !within_noise;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace dpwa::bench
