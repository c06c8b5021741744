#include "examples/train/plan.h"

#include <cmath>
#include <string>

#include "examples/train/shards.h"

namespace dpwa::train {

RunIdentity identify(const TrainOptions& options, const Config& config, const Dataset& train) {
  RunIdentity identity;
  identity.node = config.self;
  identity.data = std::string(to_string(options.data));
  identity.split = to_string(options.split);
  identity.model = std::string(to_string(options.model));
  identity.optimizer = std::string(to_string(options.optimizer));
  identity.lr = options.lr;
  identity.schedule = std::string(to_string(options.schedule));
  identity.batch_size = options.batch_size;
  identity.seed = options.seed;
  identity.nodes = config.nodes.size();
  identity.rank = config.self_index();
  identity.train_size = train.size();
  return identity;
}

std::uint64_t total_samples(const TrainOptions& options, const RunIdentity& identity) {
  if (options.steps != 0) return options.steps * options.batch_size;
  const auto epoch = epoch_samples(identity.train_size, identity.nodes, identity.rank);
  return static_cast<std::uint64_t>(std::llround(options.epochs * static_cast<double>(epoch)));
}

int compute_threads(const TrainOptions& options, const Config& config) {
  if (options.threads != 0) return options.threads;
  return static_cast<int>(config.self_node().cores.size());
}

}  // namespace dpwa::train
