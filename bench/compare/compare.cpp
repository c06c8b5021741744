#include "bench/compare/compare.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string_view>

#include "bench/commands.h"
#include "bench/quantity.h"
#include "dpwa/cli/text_table.h"

namespace dpwa::bench {
namespace {

// What tells one measurement from another, in the order of a label.
constexpr std::array identities = {
    "kind",          "name",           "model",     "bytes",    "nodes",
    "pulling_nodes", "mode",           "transport", "encoding", "security",
    "checksum",      "blend",          "dtype",     "threads",  "parameters",
    "tensors",       "pulls_per_node", "workers",   "servers",  "type",
    "optimizer",     "compression",    "ping_pong", "keys",     "replicas",
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
    KnownFigure{"ratio_to_checked_raw", true, ""},
    KnownFigure{"latency_ratio_to_checked_raw", false, ""},
    KnownFigure{"ratio_to_hand_written", true, ""},
    KnownFigure{"send_us", false, ""},
    KnownFigure{"wait_us", false, ""},
    KnownFigure{"step_us", false, "step_us"},
    KnownFigure{"ratio_to_ddp", false, ""},
    KnownFigure{"ratio_to_gloo", true, ""},
    KnownFigure{"ratio_to_ps_lite", true, ""},
    KnownFigure{"pushed_bytes", false, ""},
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
    // Raw loops, DDP and other peers are references of the same run: their figures are not compared
    // over time.
    const bool plain = key == "windows" || key == "settings" || key == "noise" || key == "raw" ||
                       key == "checked_raw" || key == "ddp" || key == "gloo" || key == "ps_lite" ||
                       std::ranges::any_of(known_figures, [&](const KnownFigure& known) {
                         return known.key == key;
                       });
    if (plain || !entry.is_structured()) continue;
    collect(entry, entry.is_object() ? here + (here.empty() ? "" : " ") + key : here, figures);
  }
}

bool overlap(const Range& a, const Range& b) {
  return a.min <= b.max && b.min <= a.max;
}

struct CompareOptions {
  std::string before;
  std::string after;
  double threshold = 0.9;
  bool json = false;
};

Json read(const std::string& file) {
  std::ifstream stream(file);
  const Json document = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) throw CLI::ValidationError(file, "this file holds no JSON document");
  return document;
}

std::string shown(double value) {
  return number_text(value, value < 10 ? 3 : 1);
}

void run_compare(const CompareOptions& options, CommandContext& context) {
  const auto rows = compare(read(options.before), read(options.after), options.threshold);
  if (rows.empty()) throw std::runtime_error("the two files have no figure in common");
  std::size_t worse = 0;
  Json results = Json::array();
  cli::TextTable table({"before", "after", "ratio", "", "figure"});
  for (const Comparison& row : rows) {
    worse += row.worse;
    table.add({shown(row.before), shown(row.after), number_text(row.ratio, 2),
               row.worse ? "WORSE" : "", row.label});
    results.push_back({{"figure", row.label},
                       {"before", row.before},
                       {"after", row.after},
                       {"ratio", row.ratio},
                       {"worse", row.worse}});
  }
  if (options.json) {
    const Json document = {
        {"threshold", options.threshold}, {"worse", worse}, {"figures", results}};
    context.out << document.dump(2) << '\n';
  } else {
    table.print(context.out);
  }
  context.err << rows.size() << " figures, " << worse << " worse than " << options.threshold
              << " beyond the spread of their windows\n";
  context.exit_code = worse > 0 ? 1 : 0;
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

void add_compare_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = parent.add_subcommand(
      "compare",
      "Compare two results; exit code 1 when something got worse. Ratios above 1 are gains");
  command->add_option("OLD", options->before, "A JSON result, or the bench.json of a run")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("NEW", options->after, "The result to compare with OLD")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--threshold", options->threshold, "The ratio below which a figure is worse")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->callback([options, &context] { run_compare(*options, context); });
}

}  // namespace dpwa::bench
