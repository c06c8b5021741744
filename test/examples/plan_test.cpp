#include "examples/train/plan.h"

#include <doctest/doctest.h>

using namespace dpwa;
using namespace dpwa::train;

namespace {

Config cluster_of_four() {
  Config config;
  for (const char* name : {"a", "b", "c", "d"}) {
    NodeEntry node;
    node.name = name;
    config.nodes.push_back(node);
  }
  config.nodes[2].cores = {4, 5};
  config.self = "c";
  return config;
}

Dataset of_size(std::size_t size) {
  Dataset data;
  data.labels.resize(size);
  return data;
}

}  // namespace

TEST_CASE("rank and number of nodes come from the place in the cluster file") {
  const auto identity = identify({}, cluster_of_four(), of_size(10));
  CHECK(identity.node == "c");
  CHECK(identity.rank == 2);
  CHECK(identity.nodes == 4);
  CHECK(identity.train_size == 10);
}

TEST_CASE("an epoch is the node's part of the data whatever the split") {
  TrainOptions options;
  options.epochs = 3;
  for (const auto kind : {SplitKind::iid, SplitKind::dirichlet, SplitKind::shared}) {
    options.split = {kind, 0.1};
    CHECK(total_samples(options, identify(options, cluster_of_four(), of_size(60000))) == 45000);
  }
  options.epochs = 0.5;
  CHECK(total_samples(options, identify(options, cluster_of_four(), of_size(60000))) == 7500);
  options.steps = 10;
  CHECK(total_samples(options, identify(options, cluster_of_four(), of_size(60000))) == 320);
}

TEST_CASE("one compute thread per core of the node unless told otherwise") {
  TrainOptions options;
  Config config = cluster_of_four();
  CHECK(compute_threads(options, config) == 2);
  config.self = "a";
  CHECK(compute_threads(options, config) == 0);
  options.threads = 3;
  CHECK(compute_threads(options, config) == 3);
}
