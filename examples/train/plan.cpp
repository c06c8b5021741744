#include "examples/train/plan.h"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "dpwa/config/config.h"
#include "dpwa/config/names.h"
#include "dpwa/config/node_threads.h"
#include "dpwa/config/text.h"

namespace dpwa::train {
namespace {

constexpr std::string_view of_node = "{node}";  // in --save

// Nodes 'w1' and 'w1.own' have one file between them in {node}.safetensors.
void require_own_files(const TrainOptions& options, const Config& config) {
  std::map<std::filesystem::path, std::string> writers;
  for (const NodeEntry& node : config.nodes) {
    const ModelPaths paths = model_paths(options.save, config, node.name);
    for (const std::filesystem::path& path : {paths.averaged, paths.own}) {
      if (path.empty()) continue;
      const auto [found, first] = writers.try_emplace(path.lexically_normal(), node.name);
      if (first || found->second == node.name) continue;
      throw ConfigError("--save: '" + options.save.string() + "' would make '" +
                        found->first.string() + "' a file of '" + found->second + "' and of '" +
                        node.name +
                        "'; accepted: a name of its own for each node, such as "
                        "{node}/model.safetensors");
    }
  }
}

}  // namespace

bool step_together(const Config& config) {
  return config.backend == Backend::collective ||
         (config.backend == Backend::kvstore &&
          merges(config.kvstore.type, config.kvstore.staleness));
}

bool updates_at_each_push(const Config& config) {
  return config.backend == Backend::kvstore && !is_local(config.kvstore.type) &&
         !merges(config.kvstore.type, config.kvstore.staleness);
}

std::optional<RateOfWorkers> rate_of_workers(const TrainOptions& options, const Config& config) {
  const std::size_t workers = config.nodes.size();
  if (options.lr_given || !updates_at_each_push(config) || workers < 2) return std::nullopt;
  const double lr = options.lr / static_cast<double>(workers);
  return RateOfWorkers{lr, "--lr " + config::number_text(lr) + ": the default of " +
                               config::number_text(options.lr) + " divided by the " +
                               std::to_string(workers) +
                               " workers, because each of their pushes is an update"};
}

std::string where_to_look(const TrainOptions& options, const Config& config) {
  const std::string rate = "--lr " + config::number_text(options.lr);
  const std::size_t workers = config.nodes.size();
  if (updates_at_each_push(config) && options.lr_given && workers > 1)
    return rate + ": with kvstore.type " +
           config::name_in(config::kvstore_type_words, config.kvstore.type) + " each of the " +
           std::to_string(workers) + " workers makes whole updates of its own; try " +
           rounded(options.lr / static_cast<double>(workers), "%.2g");
  return rate + ": try another one, and look at the data and its labels";
}

std::string rounded(double value, const char* format) {
  std::array<char, 400> digits{};  // those of any double
  std::snprintf(digits.data(), digits.size(), format, value);
  return digits.data();
}

void check_company(const TrainOptions& options, const Config& config) {
  const std::string alone = "backend: null trains alone; accepted: ";
  if (config.backend == Backend::null) {
    if (!options.join.empty())
      throw ConfigError("--join: " + alone + "no --join, or backend: gossip");
    const auto refuse = [&alone](const std::string& key, std::uint64_t nodes) {
      throw ConfigError(key + ": " + std::to_string(nodes) + " nodes, where " + alone +
                        "1, or backend: gossip");
    };
    if (options.min_nodes > 1) refuse("--min-nodes", options.min_nodes);
    if (options.min_nodes == 0 && config.gossip.min_nodes > 1)
      refuse(config.file.string() + ": gossip.min_nodes", config.gossip.min_nodes);
  }
  const std::uint64_t least =
      options.min_nodes != 0 ? options.min_nodes : std::uint64_t{config.gossip.min_nodes};
  const bool only_of_file =
      config.backend == Backend::collective || config.backend == Backend::kvstore;
  if (only_of_file && least > config.nodes.size())
    throw ConfigError("--min-nodes: " + std::to_string(least) + " nodes, where the file has " +
                      std::to_string(config.nodes.size()) + "; accepted: at most that many");
  if (config.backend == Backend::gossip && !may_run(config, options.min_nodes))
    throw ConfigError("--min-nodes: " + unreachable_count(config, options.min_nodes) +
                      "; accepted: at most " + std::to_string(config.nodes.size()) +
                      ", or join: open");
  if (options.save.empty()) return;
  const bool several = config.by_seeds || config.nodes.size() > 1;
  if (several && options.save.string().find(of_node) == std::string::npos)
    throw ConfigError("--save: '" + options.save.string() + "' would be one file of all " +
                      (config.by_seeds ? "" : std::to_string(config.nodes.size()) + " ") +
                      "nodes; accepted: a name with {node}, such as {node}.safetensors");
  require_own_files(options, config);
}

void require_data_directory(const TrainOptions& options) {
  if (options.data == DataKind::synthetic || !options.data_dir.empty()) return;
  throw ConfigError("--data-dir: not given; accepted: the directory of the " +
                    std::string(config::name_in(data_names, options.data)) +
                    " files, here or in DPWA_DATA_DIR (or --data synthetic, which needs none)");
}

Plan::Plan(const TrainOptions& given, const Config& of_run, const Dataset& train)
    : options(given), config(of_run) {
  identity.node = config.self;
  identity.data = config::name_in(data_names, options.data);
  identity.split = to_string(options.split);
  identity.model = config::name_in(model_names, options.model);
  identity.optimizer = config::name_in(optimizer_names, options.optimizer);
  identity.lr = options.lr;
  identity.schedule = config::name_in(schedule_names, options.schedule);
  identity.batch_size = options.batch_size;
  identity.seed = options.seed;
  identity.nodes = options.shard ? options.shard->of : config.nodes.size();
  identity.rank = options.shard ? options.shard->index : config.self_index();
  identity.by_place = !options.shard && !config.self_added;
  identity.train_size = train.size();
  identity.shares_data = config.backend == Backend::collective &&
                         options.split.kind == SplitKind::iid && !options.shard;
}

std::vector<std::pair<std::string, std::string>> Plan::common_terms() const {
  std::vector<std::pair<std::string, std::string>> terms = {
      {"--data", identity.data + ", " + std::to_string(identity.train_size) + " samples"},
      {"--split", identity.split},
      {"--seed", std::to_string(options.seed)},
      {"--model", identity.model},
      {"--optimizer", identity.optimizer},
      {"--lr", config::number_text(identity.lr)},
      {"--schedule", identity.schedule}};
  if (config.backend == Backend::gossip) return terms;
  // The learning rate depends on the finished part of the run.
  const bool rates_move = options.schedule != Schedule::constant;
  if (!identity.shares_data && !rates_move) return terms;
  if (options.shard) terms.emplace_back("--shard", "1/" + std::to_string(identity.nodes));
  terms.emplace_back("--batch-size", std::to_string(options.batch_size));
  const std::string reason = rates_move ? " (the end of --schedule " + identity.schedule + ")" : "";
  if (options.steps != 0) {
    terms.emplace_back("--steps", std::to_string(options.steps) + reason);
  } else {
    terms.emplace_back("--epochs", config::number_text(options.epochs) + reason);
  }
  return terms;
}

RunLength Plan::length() const {
  const auto by_epochs = [&](std::uint64_t epoch) {
    return static_cast<std::uint64_t>(std::llround(options.epochs * static_cast<double>(epoch)));
  };
  RunLength length;
  if (identity.shares_data) {
    if (options.steps != 0) {
      length.steps = options.steps;
    } else {
      length.samples = by_epochs(identity.train_size);
    }
  } else if (options.steps != 0) {
    length.samples = options.steps * options.batch_size;
  } else {
    // The same for every split, so budgets are comparable and no node trains alone at the end.
    length.samples = by_epochs(shard(identity.train_size, identity.nodes, identity.rank).count);
  }
  return length;
}

double Plan::common_length() const {
  if (!step_together(config) || options.steps != 0) return 0;
  return options.epochs * static_cast<double>(identity.train_size) /
         static_cast<double>(identity.nodes);
}

std::uint64_t RunLength::steps_of(std::uint64_t batch_size, std::uint64_t nodes) const {
  if (steps != SharedCursor::no_end) return steps;
  const std::uint64_t batch = batch_size * nodes;
  return (samples + batch - 1) / batch;
}

std::string Plan::data_words(std::size_t samples) const {
  const std::string all = std::to_string(identity.train_size);
  if (identity.shares_data)
    return "training on " + all + " samples: all nodes take them in turns from one order";
  std::string text = "training on " + std::to_string(samples) + " of " + all + " samples: ";
  if (options.split.kind == SplitKind::shared) return text + "all, as --split shared says";
  if (config.by_seeds && !options.shard)
    return text +
           "all, in an order of its own, as no launcher tells the number of nodes; --shard "
           "divides them";
  text += "shard " + std::to_string(identity.rank + 1) + " of " + std::to_string(identity.nodes) +
          " (" + identity.split + ")";
  if (options.shard) return text + ", as --shard or the launcher says";
  if (!config.self_added) return text;
  return text + ", as if the file named this node last; its nodes share the same samples among " +
         std::to_string(config.nodes.size() - 1) + "; --shard and --split shared choose otherwise";
}

bool Plan::length_is_held() const {
  return config.backend == Backend::kvstore && !is_local(config.kvstore.type) &&
         step_together(config) && options.schedule != Schedule::constant;
}

std::optional<std::string> Plan::nothing_left(const RunPosition& position,
                                              const Origin& origin) const {
  const RunLength end = length();
  if (position.step < end.steps && position.cursor.value_or(position.of_stream()) < end.samples)
    return std::nullopt;
  const bool by_steps = options.steps != 0;
  // Where all have the same length none is beyond it.
  const std::uint64_t step =
      length_is_held() ? position.step : std::max(position.step, origin.next_step);
  std::string text = origin.what + " is at step " + std::to_string(step);
  if (by_steps) {
    text += ", so --steps " + std::to_string(options.steps) + " trains nothing more; ";
  } else {
    const std::uint64_t nodes = identity.shares_data ? identity.nodes : 1;
    text += ", where --epochs " + config::number_text(options.epochs) + " has ended (step " +
            std::to_string(end.steps_of(options.batch_size, nodes)) +
            "), so nothing more is trained; ";
  }
  const std::string option = by_steps ? "--steps" : "--epochs";
  if (length_is_held())
    return text + "the servers refuse another " + option + " in this run, because --schedule " +
           identity.schedule +
           " depends on it; for more, start servers without its snapshots, and all nodes with a "
           "larger " +
           option + " (from the first step, or from checkpoints with --resume)";
  if (!by_steps) return text + "a larger --epochs would";
  return text + "--steps above " + std::to_string(step) + " would";
}

std::uint64_t Plan::node_stream(SeedRole role) const {
  const SeedStreams streams(options.seed);
  return identity.by_place ? streams.of_rank(role, identity.rank)
                           : streams.of_pair(role, identity.rank, hash_of(config.self));
}

ModelPaths model_paths(const std::filesystem::path& file, const Config& config,
                       const std::string& node) {
  const auto named = [&node](const std::filesystem::path& path) {
    return std::filesystem::path(boost::algorithm::replace_all_copy(path.string(), of_node, node));
  };
  if (config.backend == Backend::null) return {{}, named(file)};
  const std::string own = file.stem().string() + ".own" + file.extension().string();
  return {named(file), named(file.parent_path() / own)};
}

int compute_threads(const TrainOptions& options, const Config& config, std::size_t processors) {
  if (options.threads != 0) return static_cast<int>(options.threads);
  const int of_node = node_threads(config, processors);
  const auto cpus =
      std::ranges::count(options.devices, DeviceChoice::Kind::cpu, &DeviceChoice::kind);
  return std::max(1, of_node / std::max(1, static_cast<int>(cpus)));
}

}  // namespace dpwa::train
