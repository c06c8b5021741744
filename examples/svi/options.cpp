#include "examples/svi/options.h"

#include "examples/train/command_line.h"

namespace dpwa::svi {
namespace {

using train::add;
using train::positive;
using train::some;
using train::whole;

void add_model_options(CLI::App& app, SviOptions& o) {
  add(app, "--data", data_names, "Data set; default engel", o.data);
  add(app, "--data-dir", "DIR", "Folder of NAME.csv; scripts/prepare_svi_data.py writes it",
      o.data_dir, some);
  add(app, "--hidden", "0 to 4096", "Units of the network, 0 = a linear model; default 16",
      o.hidden, whole(0, 4096));
  add(app, "--posterior", posterior_names, "Posterior of the weights; default mean-field",
      o.posterior);
  add(app, "--exchange", exchange_names,
      "What the nodes of backend gossip average; default parameters", o.exchange);
}

void add_training_options(CLI::App& app, SviOptions& o) {
  add(app, "--lr", "a number > 0", "Learning rate of Adam, which falls to a tenth; default 0.02",
      o.lr, positive);
  add(app, "--steps", "a whole number >= 1", "Steps of each node; default 2000", o.steps, whole(1));
  add(app, "--batch-size", "a whole number >= 0", "Rows of a step, 0 = all of the shard; default 0",
      o.batch_size, whole(0, 1 << 30));
  add(app, "--draws", "1 to 1024", "Draws of the weights in a step; default 4", o.draws,
      whole(1, 1024));
  add(app, "--seed", "a whole number >= 0", "Seed, the same on every node; default 1", o.seed,
      whole(0));
  add(app, "--threads", "1 to 1024", "Compute threads; default 1", o.threads, whole(1, 1024));
  add(app, "--run-dir", "DIR", "Writes NODE.metrics.jsonl and NODE.result.json to DIR", o.run_dir,
      some);
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  SviOptions& o = parsed.options;
  CLI::App app("One node of a Bayesian regression by variational inference.", "dpwa-svi");
  train::add_common_options(app, o.config, o.name, "a launcher");
  add_model_options(app, o);
  add_training_options(app, o);
  app.footer(
      "Exit codes: 0 done; 1 failed while running; 2 wrong usage, data or configuration;\n"
      "130/143 ended by SIGINT/SIGTERM.");
  if (!train::parse(app, argc, argv, parsed)) return parsed;
  const std::string data = config::name_in(data_names, o.data);
  if (o.data != DataKind::synthetic && o.data_dir.empty())
    return train::refuse<SviOptions>(
        app, "--data " + data + " needs --data-dir; accepted: the folder with " + data +
                 ".csv, or --data synthetic (see dpwa-svi --help)");
  return parsed;
}

}  // namespace dpwa::svi
