#include "examples/train/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "dpwa/base/version.h"
#include "dpwa/cli/help_format.h"
#include "dpwa/cli/usage_problem.h"
#include "dpwa/config/backends.h"
#include "examples/train/option_values.h"

namespace dpwa::train {
namespace {

void add_data_options(CLI::App& app, TrainOptions& o) {
  add(app, "--data", "mnist|cifar10|synthetic", "Data set; default mnist",
      choice(o.data, parse_data));
  add(app, "--data-dir", "DIR", "Folder of its files; default $DPWA_DATA_DIR", path(o.data_dir));
  add(app, "--split", "iid|dirichlet:ALPHA|shared",
      "How the nodes share the data, ALPHA > 0; default iid", choice(o.split, parse_split),
      ", where ALPHA is a number > 0");
  add(app, "--shard", "K/N",
      "Trains on part K of N of the split, from 1; default this node's position in the file",
      choice(o.shard, parse_shard), " with 1 <= K <= N <= 65536, such as 2/4");
  add(app, "--model", "mlp|cnn|resnet18", "Model; default mlp", choice(o.model, parse_model));
}

void add_training_options(CLI::App& app, TrainOptions& o, std::uint64_t& threads) {
  add(app, "--optimizer", "sgd|momentum|adam", "Optimizer; default momentum",
      choice(o.optimizer, parse_optimizer));
  add(app, "--lr", "a number > 0",
      "Learning rate; default sgd 0.1, momentum 0.03, adam 0.001, and where each push of a worker "
      "is an update (kvstore.type dist_async, dist_ssp) that divided by the workers",
      positive(o.lr));
  add(app, "--schedule", "constant|linear|taper",
      "Schedule of the learning rate; linear falls to 0, taper to half of it; default taper",
      choice(o.schedule, parse_schedule));
  add(app, "--batch-size", "1 to 65536", "Samples per step; default 32",
      whole(o.batch_size, 1, 65536));
  CLI::Option* epochs =
      add(app, "--epochs", "a number > 0",
          "Length; an epoch is data set size / nodes samples on every node; default 3",
          positive(o.epochs));
  add(app, "--steps", "a whole number >= 1", "Length in steps instead", whole(o.steps, 1))
      ->excludes(epochs);
  add(app, "--seed", "a whole number >= 0",
      "Seed of split, order, weights and choice of peers; the same on every node; default 1",
      whole(o.seed, 0));
  add(app, "--init-seed", "a whole number >= 0", "Seed of the initial weights; default --seed",
      whole(o.init_seed, 0));
  CLI::Option* device = add(app, "--device", "cpu|cuda|cuda:N|auto",
                            "Device of the model; default cpu", choice(o.device, parse_device));
  add(app, "--devices", "cpu:N|cuda:I,cuda:J,...",
      "Several devices of this process, which share every batch", choice(o.devices, parse_devices),
      ", N from 1 to 1024, no device twice")
      ->excludes(device);
  add(app, "--threads", "1 to 1024",
      "Compute threads of each device; default one per core of the node, else the processors "
      "divided by the nodes on this host; shared by the devices",
      whole(threads, 1, 1024));
  add(app, "--step-time", "milliseconds, 0 to 3600000",
      "Extends every step to this duration, to emulate compute time; default 0",
      milliseconds(o.step_time));
}

void add_search_options(CLI::App& app, TrainOptions& o) {
  CLI::Option* find =
      app.add_flag("--find-batch", o.find_batch,
                   "Finds the largest --batch-size that fits, without training or network");
  add(app, "--memory-budget", "MiB, 1 to 16777216",
      "Memory of the process, for --find-batch on the CPU; default its present memory plus 4/5 "
      "of the available memory divided by the nodes on this host",
      [&o](const std::string& text) {
        std::uint64_t mebibytes = 0;
        if (!whole(mebibytes, 1, 1 << 24)(text)) return false;
        o.memory_budget = mebibytes << 20;
        return true;
      })
      ->needs(find);
}

CLI::Option* add_file_options(CLI::App& app, TrainOptions& o) {
  CLI::Option* checkpoint =
      add(app, "--checkpoint", "DIR", "Keeps this node's two latest checkpoints in DIR",
          path(o.checkpoint));
  add(app, "--checkpoint-every", "a whole number >= 0",
      "Steps between checkpoints, 0 = only at the end; default 1000", whole(o.checkpoint_every, 0));
  app.add_flag("--resume", o.resume, "Continues from the latest checkpoint")->needs(checkpoint);
  add(app, "--run-dir", "DIR", "Writes NODE.metrics.jsonl and NODE.result.json to DIR",
      path(o.run_dir));
  add(app, "--save", "FILE",
      "Writes the final model, the average of all nodes, to FILE (safetensors), and the node's own "
      "model of before to the same name with .own before its extension. {node} in FILE is this "
      "node's name; several nodes need it: {node}.safetensors",
      path(o.save));
  add(app, "--eval-every", "a whole number >= 0",
      "Steps between evaluations on the test set, 0 = only at the end; default 0",
      whole(o.eval_every, 0));
  add(app, "--evaluate-threads", "1 to 1024",
      "Threads that evaluate at once; default one, with all compute threads",
      whole(o.evaluate_threads, 1, 1024));
  app.add_flag("--reestimate-batchnorm", o.reestimate_batch_norm,
               "Measures the BatchNorm statistics of the averaged model again");
  app.add_flag("--quiet", o.quiet, "No progress line");
  return checkpoint;
}

ParsedOptions refuse(std::string why) {
  return {false, {}, "dpwa-train: " + std::move(why) + "\n", 2};
}

}  // namespace

double default_lr(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::sgd:
      return 0.1;
    case OptimizerKind::momentum:
      return 0.03;
    case OptimizerKind::adam:
      return 0.001;
  }
  return 0.03;
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  TrainOptions& o = parsed.options;
  std::uint64_t threads = 0;
  CLI::App app("One training node of a dpwa cluster.", "dpwa-train");
  dpwa::cli::format_help(app);
  app.set_version_flag("--version", "dpwa-train " + std::string(dpwa::version()) +
                                        " (back ends: " + available_backends() + ")");
  add(app, "--config", "FILE", "Cluster file", path(o.config))->required();
  add(app, "--name", "NODE",
      "This node's name in it; default $DPWA_NAME, else from torchrun, srun, mpirun or Kubernetes; "
      "without nodes in the file, the launcher's processes are the nodes",
      [&o](const auto& text) {
        o.name = text;
        return !text.empty();
      });
  app.add_option("--join", o.join,
                 "Joins a running cluster through this node of it, without an entry in the file; "
                 "repeatable; DPWA_HOST and DPWA_PORT set this node's endpoint")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false);
  add(app, "--min-nodes", "1 to 65536",
      "Least number of nodes at the start and in the final average; default "
      "gossip.min_nodes of the file",
      whole(o.min_nodes, 1, 65536));
  add_data_options(app, o);
  add_training_options(app, o, threads);
  add_file_options(app, o);
  add_search_options(app, o);
  app.footer(
      "Exit codes: 0 done; 1 failed while running; 2 wrong usage or configuration;\n"
      "130/143 ended by SIGINT/SIGTERM after a clean stop.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {false, {}, app.help(), 0};
  } catch (const CLI::CallForVersion& wanted) {
    return {false, {}, std::string(wanted.what()) + "\n", 0};
  } catch (const CLI::ParseError& error) {
    return refuse(cli::usage_problem(app, error) + " (see dpwa-train --help)");
  }
  if (o.data_dir.empty())
    if (const char* dir = std::getenv("DPWA_DATA_DIR")) o.data_dir = dir;
  if (o.shard && o.split.kind == SplitKind::shared)
    return refuse(
        "--shard: with --split shared every node has all the data; accepted: one of the two");
  o.seed_given = app.count("--seed") > 0;
  o.lr_given = app.count("--lr") > 0;
  if (!o.lr_given) o.lr = default_lr(o.optimizer);
  if (app.count("--init-seed") == 0) o.init_seed = o.seed;
  o.threads = static_cast<int>(threads);
  parsed.run = true;
  return parsed;
}

}  // namespace dpwa::train
