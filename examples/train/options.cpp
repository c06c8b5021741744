#include "examples/train/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "examples/train/command_line.h"

namespace dpwa::train {
namespace {

// The text behind this beginning of it; empty when it begins otherwise.
std::string_view after(std::string_view beginning, std::string_view text) {
  return text.starts_with(beginning) ? text.substr(beginning.size()) : std::string_view();
}

std::optional<Split> parse_split(std::string_view text) {
  if (text == "iid") return Split{SplitKind::iid, 0};
  if (text == "shared") return Split{SplitKind::shared, 0};
  const auto alpha = config::parse_number(after("dirichlet:", text));
  if (!alpha || *alpha <= 0) return std::nullopt;
  return Split{SplitKind::dirichlet, *alpha};
}

std::optional<DeviceChoice> parse_device(std::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return DeviceChoice{Kind::cpu, -1};
  if (text == "cuda") return DeviceChoice{Kind::cuda, -1};
  if (text == "auto") return DeviceChoice{Kind::automatic, -1};
  const auto index = number_in<std::uint8_t>(after("cuda:", text));
  if (!index || *index > 127) return std::nullopt;
  return DeviceChoice{Kind::cuda, *index};
}

std::optional<std::vector<DeviceChoice>> parse_devices(std::string_view text) {
  if (const auto count = number_in<std::uint16_t>(after("cpu:", text))) {
    if (*count < 1 || *count > 1024) return std::nullopt;
    return std::vector<DeviceChoice>(*count);
  }
  std::vector<DeviceChoice> gpus;
  while (true) {
    const auto comma = text.find(',');
    const auto gpu = parse_device(text.substr(0, comma));
    if (!gpu || gpu->index < 0) return std::nullopt;
    if (std::ranges::count(gpus, gpu->index, &DeviceChoice::index) > 0) return std::nullopt;
    gpus.push_back(*gpu);
    if (comma == std::string_view::npos) return gpus;
    text.remove_prefix(comma + 1);
  }
}

std::optional<ShardChoice> parse_shard(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto number = number_in<std::uint64_t>(text.substr(0, slash));
  const auto of = number_in<std::uint64_t>(text.substr(slash + 1));
  if (!number || !of || *number < 1 || *number > *of || *of > 65536) return std::nullopt;
  return ShardChoice{*number - 1, *of};
}

std::optional<std::chrono::nanoseconds> parse_milliseconds(std::string_view text) {
  const auto value = config::parse_number(text);
  if (!value || *value < 0 || *value > 3.6e6) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*value * 1e6));
}

std::optional<std::uint64_t> parse_mebibytes(const std::string& text) {  // in bytes
  const auto value = whole(1, 1 << 24)(text);
  return value ? std::optional(*value << 20) : std::nullopt;
}

void add_data_options(CLI::App& app, TrainOptions& o) {
  add(app, "--data", data_names, "Data set; default mnist", o.data);
  add(app, "--data-dir", "DIR", "Folder of its files; default $DPWA_DATA_DIR", o.data_dir, some);
  add(app, "--split", "iid|dirichlet:ALPHA|shared",
      "How the nodes share the data, ALPHA > 0; default iid", o.split, parse_split,
      ", where ALPHA is a number > 0");
  add(app, "--shard", "K/N",
      "Trains on part K of N of the split, from 1; default this node's position in the file",
      o.shard, parse_shard, " with 1 <= K <= N <= 65536, such as 2/4");
  add(app, "--model", model_names, "Model; default mlp", o.model);
}

void add_training_options(CLI::App& app, TrainOptions& o) {
  add(app, "--optimizer", optimizer_names, "Optimizer; default momentum", o.optimizer);
  add(app, "--lr", "a number > 0",
      "Learning rate; default sgd 0.1, momentum 0.03, adam 0.001, and where each push of a worker "
      "is an update (kvstore.type dist_async, dist_ssp) that divided by the workers",
      o.lr, positive);
  add(app, "--schedule", schedule_names,
      "Schedule of the learning rate; linear falls to 0, taper to half of it; default taper",
      o.schedule);
  add(app, "--batch-size", "1 to 65536", "Samples per step; default 32", o.batch_size,
      whole(1, 65536));
  CLI::Option* epochs =
      add(app, "--epochs", "a number > 0",
          "Length; an epoch is data set size / nodes samples on every node; default 3", o.epochs,
          positive);
  add(app, "--steps", "a whole number >= 1", "Length in steps instead", o.steps, whole(1))
      ->excludes(epochs);
  add(app, "--seed", "a whole number >= 0",
      "Seed of split, order, weights and choice of peers; the same on every node; default 1",
      o.seed, whole(0));
  add(app, "--init-seed", "a whole number >= 0", "Seed of the initial weights; default --seed",
      o.init_seed, whole(0));
  CLI::Option* device = add(app, "--device", "cpu|cuda|cuda:N|auto",
                            "Device of the model; default cpu", o.device, parse_device);
  add(app, "--devices", "cpu:N|cuda:I,cuda:J,...",
      "Several devices of this process, which share every batch", o.devices, parse_devices,
      ", N from 1 to 1024, no device twice")
      ->excludes(device);
  add(app, "--threads", "1 to 1024",
      "Compute threads of each device; default one per core of the node, else the processors "
      "divided by the nodes on this host; shared by the devices",
      o.threads, whole(1, 1024));
  add(app, "--step-time", "milliseconds, 0 to 3600000",
      "Extends every step to this duration, to emulate compute time; default 0", o.step_time,
      parse_milliseconds);
}

void add_search_options(CLI::App& app, TrainOptions& o) {
  CLI::Option* find =
      app.add_flag("--find-batch", o.find_batch,
                   "Finds the largest --batch-size that fits, without training or network");
  add(app, "--memory-budget", "MiB, 1 to 16777216",
      "Memory of the process, for --find-batch on the CPU; default its present memory plus 4/5 "
      "of the available memory divided by the nodes on this host",
      o.memory_budget, parse_mebibytes)
      ->needs(find);
}

void add_file_options(CLI::App& app, TrainOptions& o) {
  CLI::Option* checkpoint =
      add(app, "--checkpoint", "DIR", "Keeps this node's two latest checkpoints in DIR",
          o.checkpoint, some);
  add(app, "--checkpoint-every", "a whole number >= 0",
      "Steps between checkpoints, 0 = only at the end; default 1000", o.checkpoint_every, whole(0));
  app.add_flag("--resume", o.resume, "Continues from the latest checkpoint")->needs(checkpoint);
  add(app, "--run-dir", "DIR", "Writes NODE.metrics.jsonl and NODE.result.json to DIR", o.run_dir,
      some);
  add(app, "--save", "FILE",
      "Writes the final model, the average of all nodes, to FILE (safetensors), and the node's own "
      "model of before to the same name with .own before its extension. {node} in FILE is this "
      "node's name; several nodes need it: {node}.safetensors",
      o.save, some);
  add(app, "--eval-every", "a whole number >= 0",
      "Steps between evaluations on the test set, 0 = only at the end; default 0", o.eval_every,
      whole(0));
  add(app, "--evaluate-threads", "1 to 1024",
      "Threads that evaluate at once; default one, with all compute threads", o.evaluate_threads,
      whole(1, 1024));
  app.add_flag("--reestimate-batchnorm", o.reestimate_batch_norm,
               "Measures the BatchNorm statistics of the averaged model again");
  app.add_flag("--quiet", o.quiet, "No progress line");
}

}  // namespace

std::string to_string(const Split& split) {
  if (split.kind == SplitKind::iid) return "iid";
  if (split.kind == SplitKind::shared) return "shared";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), split.alpha).ptr;
  return "dirichlet:" + std::string(digits.data(), end);
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  TrainOptions& o = parsed.options;
  CLI::App app("One training node of a dpwa cluster.", "dpwa-train");
  add_common_options(
      app, o.config, o.name,
      "torchrun, srun, mpirun or Kubernetes; without nodes in the file, the launcher's processes "
      "are the nodes");
  app.add_option("--join", o.join,
                 "Joins a running cluster through this node of it, without an entry in the file; "
                 "repeatable; DPWA_HOST and DPWA_PORT set this node's endpoint")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false);
  add(app, "--min-nodes", "1 to 65536",
      "Least number of nodes at the start and in the final average; default "
      "gossip.min_nodes of the file",
      o.min_nodes, whole(1, 65536));
  add_data_options(app, o);
  add_training_options(app, o);
  add_file_options(app, o);
  add_search_options(app, o);
  app.footer(
      "Exit codes: 0 done; 1 failed while running; 2 wrong usage or configuration;\n"
      "130/143 ended by SIGINT/SIGTERM after a clean stop, 143 also by SIGUSR1/SIGUSR2, the notice "
      "of\n"
      "a preemption (0 under torchrun, srun and mpirun; preempted_exit_code in the cluster file).");
  if (!parse(app, argc, argv, parsed)) return parsed;
  if (o.data_dir.empty())
    if (const char* dir = std::getenv("DPWA_DATA_DIR")) o.data_dir = dir;
  if (o.shard && o.split.kind == SplitKind::shared)
    return refuse<TrainOptions>(
        app, "--shard: with --split shared every node has all the data; accepted: one of the two");
  o.seed_given = app.count("--seed") > 0;
  o.lr_given = app.count("--lr") > 0;
  if (!o.lr_given) o.lr = default_lr(o.optimizer);
  if (app.count("--init-seed") == 0) o.init_seed = o.seed;
  return parsed;
}

}  // namespace dpwa::train
