#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fstream>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "bench/commands.h"
#include "bench/compare/compare.h"
#include "bench/quantity.h"
#include "dpwa/cli/text_table.h"

namespace dpwa::bench {
namespace {

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
