#include "examples/svi/options.h"

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "dpwa/base/version.h"
#include "dpwa/cli/help_format.h"
#include "dpwa/cli/usage_problem.h"
#include "dpwa/config/backends.h"
#include "examples/train/option_values.h"

namespace dpwa::svi {
namespace {

using train::add;
using train::choice;
using train::path;
using train::positive;
using train::whole;

template <typename Kind>
auto one_of(std::initializer_list<Kind> kinds) {
  return [all = std::vector<Kind>(kinds)](std::string_view text) -> std::optional<Kind> {
    for (const Kind kind : all)
      if (text == to_string(kind)) return kind;
    return std::nullopt;
  };
}

void add_model_options(CLI::App& app, SviOptions& o) {
  add(app, "--data", "engel|diabetes|synthetic", "Data set; default engel",
      choice(o.data, one_of({DataKind::engel, DataKind::diabetes, DataKind::synthetic})));
  add(app, "--data-dir", "DIR", "Folder of NAME.csv; scripts/prepare_svi_data.py writes it",
      path(o.data_dir));
  add(app, "--hidden", "0 to 4096", "Units of the network, 0 = a linear model; default 16",
      whole(o.hidden, 0, 4096));
  add(app, "--posterior", "mean-field|full", "Posterior of the weights; default mean-field",
      choice(o.posterior, one_of({PosteriorKind::mean_field, PosteriorKind::full})));
  add(app, "--exchange", "natural|parameters",
      "What the nodes of backend gossip average; default parameters",
      choice(o.exchange, one_of({ExchangeKind::natural, ExchangeKind::parameters})));
}

void add_training_options(CLI::App& app, SviOptions& o) {
  add(app, "--lr", "a number > 0", "Learning rate of Adam, which falls to a tenth; default 0.02",
      positive(o.lr));
  add(app, "--steps", "a whole number >= 1", "Steps of each node; default 2000", whole(o.steps, 1));
  add(app, "--batch-size", "a whole number >= 0", "Rows of a step, 0 = all of the shard; default 0",
      whole(o.batch_size, 0, 1 << 30));
  add(app, "--draws", "1 to 1024", "Draws of the weights in a step; default 4",
      whole(o.draws, 1, 1024));
  add(app, "--seed", "a whole number >= 0", "Seed, the same on every node; default 1",
      whole(o.seed, 0));
  add(app, "--threads", "1 to 1024", "Compute threads; default 1", whole(o.threads, 1, 1024));
  add(app, "--run-dir", "DIR", "Writes NODE.metrics.jsonl and NODE.result.json to DIR",
      path(o.run_dir));
}

ParsedOptions refuse(const std::string& why) {
  return {false, {}, "dpwa-svi: " + why + " (see dpwa-svi --help)\n", 2};
}

}  // namespace

const char* to_string(DataKind kind) {
  switch (kind) {
    case DataKind::engel:
      return "engel";
    case DataKind::diabetes:
      return "diabetes";
    case DataKind::synthetic:
      break;
  }
  return "synthetic";
}

const char* to_string(PosteriorKind kind) {
  return kind == PosteriorKind::full ? "full" : "mean-field";
}

const char* to_string(ExchangeKind kind) {
  return kind == ExchangeKind::natural ? "natural" : "parameters";
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  SviOptions& o = parsed.options;
  CLI::App app("One node of a Bayesian regression by variational inference.", "dpwa-svi");
  dpwa::cli::format_help(app);
  app.set_version_flag("--version", "dpwa-svi " + std::string(dpwa::version()) +
                                        " (back ends: " + available_backends() + ")");
  add(app, "--config", "FILE", "Cluster file", path(o.config))->required();
  add(app, "--name", "NODE", "This node's name in it; default $DPWA_NAME, else from a launcher",
      [&o](const auto& text) {
        o.name = text;
        return !text.empty();
      });
  add_model_options(app, o);
  add_training_options(app, o);
  app.footer(
      "Exit codes: 0 done; 1 failed while running; 2 wrong usage, data or configuration;\n"
      "130/143 ended by SIGINT/SIGTERM.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {false, {}, app.help(), 0};
  } catch (const CLI::CallForVersion& wanted) {
    return {false, {}, std::string(wanted.what()) + "\n", 0};
  } catch (const CLI::ParseError& error) {
    return refuse(cli::usage_problem(app, error));
  }
  if (o.data != DataKind::synthetic && o.data_dir.empty())
    return refuse(std::string("--data ") + to_string(o.data) +
                  " needs --data-dir; accepted: the folder with " + to_string(o.data) +
                  ".csv, or --data synthetic");
  parsed.run = true;
  return parsed;
}

}  // namespace dpwa::svi
