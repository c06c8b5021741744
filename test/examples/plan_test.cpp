#include "examples/train/plan.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/config/config.h"

using namespace dpwa::train;
using namespace dpwa;

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

const Config cluster = cluster_of_four();

Dataset of_size(std::size_t size) {
  Dataset data;
  data.labels.resize(size);
  return data;
}

}  // namespace

TEST_CASE("rank and number of nodes come from the place in the cluster file") {
  const auto identity = Plan({}, cluster_of_four(), of_size(10)).identity;
  CHECK(identity.node == "c");
  CHECK(identity.rank == 2);
  CHECK(identity.nodes == 4);
  CHECK(identity.train_size == 10);
}

TEST_CASE("what shapes a run is asked of all nodes, its length where they step together") {
  TrainOptions options;
  options.steps = 60;
  options.seed = 2;
  options.batch_size = 16;
  Config config = cluster_of_four();
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& [name, value] : Plan(options, config, of_size(10)).common_terms())
      all.push_back(name);
    return all;
  };
  const std::vector<std::string> of_gossip{"--data",      "--split", "--seed",    "--model",
                                           "--optimizer", "--lr",    "--schedule"};
  CHECK(names() == of_gossip);
  config.backend = Backend::collective;
  auto of_group = of_gossip;
  of_group.insert(of_group.end(), {"--batch-size", "--steps"});
  CHECK(names() == of_group);
}

TEST_CASE("what is asked of other nodes is refused where there can be none or too few") {
  const auto refusal = [](const TrainOptions& options, const Config& config) -> std::string {
    try {
      check_company(options, config);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  Config config = cluster_of_four();
  config.file = "c.yaml";
  TrainOptions options;
  options.min_nodes = 5;
  CHECK(refusal(options, config).empty());  // others may join
  config.backend = Backend::collective;
  CHECK(refusal(options, config) ==
        "--min-nodes: 5 nodes, where the file has 4; accepted: at most that many");
  options.min_nodes = 4;
  CHECK(refusal(options, config).empty());
  options.min_nodes = 5;
  config.backend = Backend::gossip;
  config.gossip.membership.open = false;
  CHECK(refusal(options, config).starts_with("--min-nodes: 5 nodes, where the file has 4 and "));
  options.min_nodes = 4;
  CHECK(refusal(options, config).empty());

  config.backend = Backend::null;
  CHECK(refusal(options, config).starts_with("--min-nodes: 4 nodes, where backend: null trains"));
  options.min_nodes = 1;
  config.gossip.min_nodes = 3;
  CHECK(refusal(options, config).empty());  // the option comes before the file
  options.min_nodes = 0;
  CHECK(refusal(options, config).starts_with("c.yaml: gossip.min_nodes: 3 nodes, where backend:"));
  config.gossip.min_nodes = 1;
  CHECK(refusal(options, config).empty());
  options.join = {"10.0.0.1:7001"};
  CHECK(refusal(options, config).starts_with("--join: backend: null trains alone"));
}

TEST_CASE("an epoch is the node's part of the data whatever the split") {
  TrainOptions options;
  options.epochs = 3;
  for (const auto kind : {SplitKind::iid, SplitKind::dirichlet, SplitKind::shared}) {
    options.split = {kind, 0.1};
    CHECK(Plan(options, cluster, of_size(60000)).length().samples == 45000);
  }
  options.epochs = 0.5;
  CHECK(Plan(options, cluster, of_size(60000)).length().samples == 7500);
  options.steps = 10;
  CHECK(Plan(options, cluster, of_size(60000)).length().samples == 320);
}

TEST_CASE("a resumed run that is at its end already says so, and what would train on") {
  TrainOptions options;
  options.batch_size = 32;
  const auto plan = [&] { return Plan(options, cluster, of_size(60000)); };
  const auto at = [&](std::uint64_t step) {
    RunPosition position;
    position.step = step;
    position.samples = std::min<std::uint64_t>(step * 32, plan().length().samples);
    return plan().nothing_left(position).value_or("");
  };
  options.steps = 300;
  CHECK(at(299).empty());
  const std::string expected = ", so --steps 300 trains nothing more; --steps above ";
  CHECK(at(300) == "the checkpoint is at step 300" + expected + "300 would");
  options.steps = 0;
  options.epochs = 0.5;  // 7,500 samples: the last batch is smaller
  CHECK(at(234).empty());
  CHECK(at(235) ==
        "the checkpoint is at step 235, where --epochs 0.5 has ended (step 235), so nothing more "
        "is trained; a larger --epochs would");
  RunPosition far;
  far.step = 500;
  far.samples = 500 * 32;
  options.steps = 300;
  CHECK(plan().nothing_left(far) == "the checkpoint is at step 500" + expected + "500 would");
  CHECK(plan().nothing_left(far, {"the run"}) == "the run is at step 500" + expected + "500 would");
  far.step = 300;  // the others are farther
  CHECK(plan().nothing_left(far, {"the run", 501}) ==
        "the run is at step 501" + expected + "501 would");
}

TEST_CASE("a run that has ended at servers which hold its length says how to train more") {
  TrainOptions options;
  options.batch_size = 32;
  options.steps = 300;
  Config config = cluster_of_four();
  CHECK_FALSE(Plan(options, config, {}).length_is_held());
  config.backend = Backend::kvstore;
  config.kvstore.type = KvstoreType::dist_sync;
  CHECK(Plan(options, config, {}).length_is_held());
  options.schedule = Schedule::constant;
  CHECK_FALSE(Plan(options, config, {}).length_is_held());
  options.schedule = Schedule::linear;
  config.kvstore.type = KvstoreType::dist_async;
  CHECK_FALSE(Plan(options, config, {}).length_is_held());
  config.kvstore.type = KvstoreType::local_update_cpu;
  CHECK_FALSE(Plan(options, config, {}).length_is_held());
  config.kvstore.type = KvstoreType::dist_sync;

  const auto plan = [&] { return Plan(options, config, of_size(60000)); };
  RunPosition position;
  position.step = 300;
  position.samples = 300 * 32;
  const Origin origin{"the run", 301};
  const auto ending = [](const std::string& option) {
    return "the servers refuse another " + option +
           " in this run, because --schedule linear depends on it; for more, start servers without "
           "its snapshots, and all nodes with a larger " +
           option + " (from the first step, or from checkpoints with --resume)";
  };
  CHECK(plan().nothing_left(position, origin) ==
        "the run is at step 300, so --steps 300 trains nothing more; " + ending("--steps"));
  options.steps = 0;
  options.epochs = 0.5;
  CHECK(plan().nothing_left(position, origin) ==
        "the run is at step 300, where --epochs 0.5 has ended (step 235), so nothing more is "
        "trained; " +
            ending("--epochs"));
}

TEST_CASE("nodes that step together share the data, unless the split or a shard says otherwise") {
  TrainOptions options;
  Config config = cluster_of_four();
  CHECK_FALSE(Plan(options, config, of_size(100)).identity.shares_data);
  config.backend = Backend::collective;
  const auto plan = [&] { return Plan(options, config, of_size(100)); };
  CHECK(plan().identity.shares_data);
  CHECK(Plan(options, config, of_size(100)).data_words(100) ==
        "training on 100 samples: all nodes take them in turns from one order");
  options.epochs = 2.5;
  CHECK(plan().length().samples == 250);
  CHECK(plan().length().steps == SharedCursor::no_end);
  CHECK(plan().length().steps_of(32, 4) == 2);
  options.steps = 70;
  CHECK(plan().length().steps == 70);
  CHECK(plan().length().samples == SharedCursor::no_end);
  CHECK(plan().length().steps_of(32, 4) == 70);
  options.split = {SplitKind::dirichlet, 0.1};
  CHECK_FALSE(Plan(options, config, of_size(100)).identity.shares_data);
  options.split = {SplitKind::shared, 0};
  CHECK_FALSE(Plan(options, config, of_size(100)).identity.shares_data);
  options.split = {};
  options.shard = ShardChoice{0, 4};
  CHECK_FALSE(Plan(options, config, of_size(100)).identity.shares_data);
}

TEST_CASE("a resumed run that shares its data is at its end by the samples or steps of all") {
  TrainOptions options;
  Config config = cluster_of_four();
  config.backend = Backend::collective;
  const auto plan = [&] { return Plan(options, config, of_size(100)); };
  RunPosition position;
  position.step = 3;
  position.samples = 75;
  position.cursor = 299;
  CHECK_FALSE(plan().nothing_left(position));
  position.cursor = 300;
  CHECK(plan().nothing_left(position).value_or("") ==
        "the checkpoint is at step 3, where --epochs 3 has ended (step 3), so nothing more is "
        "trained; a larger --epochs would");
  options.steps = 4;
  CHECK_FALSE(plan().nothing_left(position));
  options.steps = 3;
  CHECK(plan().nothing_left(position));
}

TEST_CASE("a chosen shard takes the place of the one by the cluster file") {
  TrainOptions options;
  options.shard = ShardChoice{1, 8};
  const auto plan = [&] { return Plan(options, cluster, of_size(100)); };
  CHECK(plan().identity.rank == 1);
  CHECK(plan().identity.nodes == 8);
  CHECK_FALSE(plan().identity.by_place);
  CHECK(Plan({}, cluster_of_four(), of_size(100)).identity.by_place);
  options.epochs = 1;
  CHECK(plan().length().samples == 13);
}

TEST_CASE("the log says which data a node trains on, and what one that joined shares") {
  TrainOptions options;
  Config config = cluster_of_four();
  const auto words = [&] { return Plan(options, config, of_size(60000)).data_words(15000); };
  CHECK(words() == "training on 15000 of 60000 samples: shard 3 of 4 (iid)");
  NodeEntry joined;
  joined.name = "e";
  config.nodes.push_back(joined);
  config.self = "e";
  config.self_added = true;
  CHECK(words() ==
        "training on 15000 of 60000 samples: shard 5 of 5 (iid), as if the file named this node "
        "last; its nodes share the same samples among 4; --shard and --split shared choose "
        "otherwise");
  options.shard = ShardChoice{1, 4};
  CHECK(words() ==
        "training on 15000 of 60000 samples: shard 2 of 4 (iid), as --shard or the launcher says");
  options.shard.reset();
  options.split.kind = SplitKind::shared;
  CHECK(words() == "training on 15000 of 60000 samples: all, as --split shared says");
}

TEST_CASE("nodes on one shard have streams of their own, nodes of the file theirs by place") {
  TrainOptions options;
  Config config = cluster_of_four();
  const auto stream = [&] {
    return Plan(options, config, of_size(100)).node_stream(SeedRole::order);
  };
  CHECK(stream() == derive_seed(options.seed, {3, 2}));
  options.shard = ShardChoice{2, 4};
  const auto chosen = stream();
  CHECK(chosen != derive_seed(options.seed, {3, 2}));
  config.self = "d";
  CHECK(stream() != chosen);
}

TEST_CASE("the default rate is divided by the workers where each push is an update") {
  Config config = cluster_of_four();
  TrainOptions options;
  options.lr = 0.03;
  const auto rate = [&] {
    const auto found = rate_of_workers(options, config);
    return found ? found->lr : options.lr;
  };
  CHECK(rate() == 0.03);
  config.backend = Backend::kvstore;
  for (const auto type : {KvstoreType::dist_sync, KvstoreType::local_update_cpu}) {
    config.kvstore.type = type;
    CHECK(rate() == 0.03);
  }
  config.kvstore.type = KvstoreType::dist_ssp;
  CHECK(rate() == 0.03);  // staleness 0: as dist_sync
  config.kvstore.staleness = 3;
  CHECK(rate() == 0.0075);
  config.kvstore.staleness = 0;
  config.kvstore.type = KvstoreType::dist_async;
  CHECK(rate() == 0.0075);
  CHECK(rate_of_workers(options, config)->words ==
        "--lr 0.0075: the default of 0.03 divided by the 4 workers, because each of their pushes "
        "is an update");
  options.lr_given = true;
  CHECK(rate() == 0.03);
  options.lr_given = false;
  config.nodes.resize(1);
  CHECK(rate() == 0.03);
}

TEST_CASE("--save has a file for each node, and the own model beside the averaged one") {
  Config config = cluster_of_four();
  const auto paths = [&](const char* file) {
    const ModelPaths found = model_paths(file, config, config.self);
    return std::pair{found.averaged.string(), found.own.string()};
  };
  using Two = std::pair<std::string, std::string>;
  CHECK(paths("out/{node}.safetensors") == Two{"out/c.safetensors", "out/c.own.safetensors"});
  CHECK(paths("{node}/m.{node}.st") == Two{"c/m.c.st", "c/m.c.own.st"});
  config.nodes[2].name = config.self = "a.{node}";  // a name stays as it is
  CHECK(paths("{node}") == Two{"a.{node}", "a.{node}.own"});
  config.backend = Backend::null;
  CHECK(paths("m.safetensors") == Two{"", "m.safetensors"});
}

TEST_CASE("--save of several nodes without {node} in its name is refused") {
  Config config = cluster_of_four();
  TrainOptions options;
  options.save = "m.safetensors";
  CHECK_THROWS_WITH_AS(check_company(options, config),
                       "--save: 'm.safetensors' would be one file of all 4 nodes; accepted: a name "
                       "with {node}, such as {node}.safetensors",
                       ConfigError);
  options.save = "m.{node}.safetensors";
  CHECK_NOTHROW(check_company(options, config));
  options.save = "m.safetensors";
  config.nodes = {config.nodes[2]};
  CHECK_NOTHROW(check_company(options, config));
  config.by_seeds = true;
  CHECK_THROWS_WITH_AS(check_company(options, config),
                       "--save: 'm.safetensors' would be one file of all nodes; accepted: a name "
                       "with {node}, such as {node}.safetensors",
                       ConfigError);
}

TEST_CASE("--save that would make one file of two nodes is refused") {
  Config config = cluster_of_four();
  config.nodes[1].name = "a.own";
  TrainOptions options;
  options.save = "{node}.safetensors";
  CHECK_THROWS_WITH_AS(check_company(options, config),
                       "--save: '{node}.safetensors' would make 'a.own.safetensors' a file of 'a' "
                       "and of 'a.own'; accepted: a name of its own for each node, such as "
                       "{node}/model.safetensors",
                       ConfigError);
  options.save = "out/{node}/../m.safetensors";
  CHECK_THROWS_AS(check_company(options, config), ConfigError);
  for (const char* good : {"{node}/model.safetensors", "m.{node}", "{node}.m.safetensors"}) {
    options.save = good;
    CHECK_NOTHROW(check_company(options, config));
  }
  options.save = "{node}.safetensors";
  config.backend = Backend::null;  // without an average there is one file of each
  CHECK_NOTHROW(check_company(options, config));
}

TEST_CASE("one compute thread per core of the node unless told otherwise") {
  TrainOptions options;
  Config config = cluster_of_four();
  CHECK(compute_threads(options, config, 16) == 2);
  CHECK(compute_threads(options, config, 1) == 1);  // under a CPU quota
  options.threads = 3;
  CHECK(compute_threads(options, config, 16) == 3);
}

TEST_CASE("devices of the CPU share the compute threads that were not asked for") {
  TrainOptions options;
  Config config = cluster_of_four();
  options.devices.resize(2);
  CHECK(compute_threads(options, config, 16) == 1);  // of two cores
  config.self = "a";
  CHECK(compute_threads(options, config, 16) == 2);  // of 16 / 4
  CHECK(compute_threads(options, config, 2) == 1);
  options.threads = 3;
  CHECK(compute_threads(options, config, 16) == 3);
}

TEST_CASE("without cores the nodes of a host share its processors") {
  TrainOptions options;
  Config config = cluster_of_four();  // all on 127.0.0.1
  config.self = "a";
  CHECK(compute_threads(options, config, 16) == 4);
  CHECK(compute_threads(options, config, 7) == 1);
  CHECK(compute_threads(options, config, 2) == 1);
  config.nodes.resize(1);
  CHECK(compute_threads(options, config, 2) == 2);
}

TEST_CASE("each schedule begins at the given rate and ends where it should") {
  for (const auto schedule : {Schedule::constant, Schedule::linear, Schedule::taper}) {
    CHECK(learning_rate(schedule, 0.1, 0.0) == 0.1);
  }
  CHECK(learning_rate(Schedule::constant, 0.1, 1.0) == 0.1);
  CHECK(learning_rate(Schedule::linear, 0.1, 0.5) == doctest::Approx(0.05));
  CHECK(learning_rate(Schedule::linear, 0.1, 1.0) == 0.0);
  CHECK(learning_rate(Schedule::taper, 0.1, 0.5) == doctest::Approx(0.075));
  CHECK(learning_rate(Schedule::taper, 0.1, 1.0) == doctest::Approx(0.05));
}
