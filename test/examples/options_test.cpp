#include <doctest/doctest.h>

#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "examples/train/options.h"
#include "test/support/temporary_directory.h"

using namespace dpwa::train;
using dpwa::test::has;

namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "dpwa-train");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

// With what is always needed, and no influence from the environment.
ParsedOptions parse_with(std::vector<const char*> arguments) {
  ::unsetenv("DPWA_DATA_DIR");
  for (const char* needed : {"--config", "c.yaml", "--data-dir", "/data"})
    arguments.push_back(needed);
  return parse(arguments);
}

}  // namespace

TEST_CASE("every --join is one node to join by, and none is the default") {
  CHECK(parse_with({}).options.join.empty());
  const ParsedOptions parsed = parse_with({"--join", "10.0.0.1:7001", "--join", "[::1]:7002"});
  REQUIRE(parsed.run);
  CHECK(parsed.options.join == std::vector<std::string>{"10.0.0.1:7001", "[::1]:7002"});
}

TEST_CASE("--min-nodes is a count of nodes, and by default what the cluster file says") {
  CHECK(parse_with({}).options.min_nodes == 0);
  CHECK(parse_with({"--min-nodes", "3"}).options.min_nodes == 3);
  const ParsedOptions none = parse_with({"--min-nodes", "0"});
  CHECK(none.exit_code == 2);
  CHECK(has(none.text, "1 to 65536"));
}

TEST_CASE("each process of a host takes another GPU, and those beyond the last one share") {
  CHECK(own_gpu(0, 1) == 0);
  CHECK(own_gpu(3, 4) == 3);
  CHECK(own_gpu(5, 4) == 1);
  CHECK(own_gpu(3, 1) == 0);  // the launcher shows each process its own
}

TEST_CASE("several devices of one process are a number of the CPU, or a list of GPUs") {
  CHECK(parse_with({}).options.devices.empty());
  const auto cpus = parse_with({"--devices", "cpu:2"}).options.devices;
  REQUIRE(cpus.size() == 2);
  CHECK((cpus[1].kind == DeviceChoice::Kind::cpu));
  const auto gpus = parse_with({"--devices", "cuda:0,cuda:3"}).options.devices;
  REQUIRE(gpus.size() == 2);
  CHECK((gpus[1].kind == DeviceChoice::Kind::cuda));
  CHECK(gpus[0].index == 0);
  CHECK(gpus[1].index == 3);
  for (const char* wrong : {"cpu", "cpu:0", "cpu:1025", "cpu:x", "cuda", "cuda:0,cuda:0", "cuda:0,",
                            "cpu:2,cuda:0", "cuda:0,cpu:2", ""}) {
    CAPTURE(wrong);
    const ParsedOptions refused = parse_with({"--devices", wrong});
    CHECK(refused.exit_code == 2);
    CHECK(has(refused.text, "accepted: cpu:N|cuda:I,cuda:J,..."));
  }
  CHECK(parse_with({"--devices", "cpu:2", "--device", "cpu"}).exit_code == 2);
}

TEST_CASE("a search for the largest batch has a budget of memory, which has no other use") {
  CHECK_FALSE(parse_with({}).options.find_batch);
  CHECK(parse_with({"--find-batch"}).options.find_batch);
  CHECK(parse_with({"--find-batch"}).options.memory_budget == 0);
  CHECK(parse_with({"--find-batch", "--memory-budget", "512"}).options.memory_budget ==
        std::uint64_t{512} << 20);
  CHECK(parse_with({"--find-batch", "--memory-budget", "0"}).exit_code == 2);
  CHECK(parse_with({"--memory-budget", "512"}).exit_code == 2);
}

TEST_CASE("--evaluate-threads is a number of threads, by default none beside the training one") {
  CHECK(parse_with({}).options.evaluate_threads == 0);
  CHECK(parse_with({"--evaluate-threads", "3"}).options.evaluate_threads == 3);
  CHECK(parse_with({"--evaluate-threads", "0"}).exit_code == 2);
}

TEST_CASE("every option arrives") {
  std::istringstream line(
      "--name w3 --data cifar10 --split dirichlet:0.25 --shard 2/5 --model resnet18 --optimizer "
      "adam --lr 3e-4 --batch-size 64 --steps 500 --seed 18446744073709551615 --init-seed 7 "
      "--device cuda:1 --threads 2 --step-time 20.5 --checkpoint ck --checkpoint-every 10 --resume "
      "--reestimate-batchnorm --run-dir runs/x --save {node}.safetensors --eval-every 50 --quiet");
  const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const ParsedOptions parsed = parse_with(arguments);
  INFO(parsed.text);
  REQUIRE(parsed.run);
  const TrainOptions& o = parsed.options;
  CHECK(o.name == "w3");
  CHECK(o.data == DataKind::cifar10);
  CHECK(o.split.kind == SplitKind::dirichlet);
  CHECK(o.split.alpha == 0.25);
  CHECK(to_string(o.split) == "dirichlet:0.25");
  REQUIRE(o.shard);
  CHECK(o.shard->index == 1);
  CHECK(o.shard->of == 5);
  CHECK(o.model == ModelKind::resnet18);
  CHECK(o.optimizer == OptimizerKind::adam);
  CHECK(o.lr == 3e-4);
  CHECK(o.lr_given);
  CHECK(o.batch_size == 64);
  CHECK(o.steps == 500);
  CHECK(o.seed == 18446744073709551615ULL);
  CHECK(o.seed_given);
  CHECK(o.init_seed == 7);
  CHECK(o.device.kind == DeviceChoice::Kind::cuda);
  CHECK(o.device.index == 1);
  CHECK(o.threads == 2);
  CHECK(o.step_time == std::chrono::microseconds(20500));
  CHECK(o.checkpoint == "ck");
  CHECK(o.checkpoint_every == 10);
  CHECK(o.resume);
  CHECK(o.reestimate_batch_norm);
  CHECK(o.run_dir == "runs/x");
  CHECK(o.save == "{node}.safetensors");
  CHECK(o.eval_every == 50);
  CHECK(o.quiet);
}

TEST_CASE("a wrong value is refused in one line with the option, the value and what is accepted") {
  struct Wrong {
    const char* option;
    const char* value;
    const char* accepted;
  };
  const std::vector<Wrong> all{{"--data", "imagenet", "mnist|cifar10|synthetic"},
                               {"--split", "dirichlet", "iid|dirichlet:ALPHA|shared"},
                               {"--split", "dirichlet:0", "iid|dirichlet:ALPHA|shared"},
                               {"--split", "dirichlet:1x", "iid|dirichlet:ALPHA|shared"},
                               {"--shard", "3", "K/N"},
                               {"--shard", "0/4", "K/N"},
                               {"--shard", "5/4", "K/N"},
                               {"--model", "vgg", "mlp|cnn|resnet18"},
                               {"--optimizer", "lamb", "sgd|momentum|adam"},
                               {"--lr", "-0.1", "a number > 0"},
                               {"--lr", "fast", "a number > 0"},
                               {"--schedule", "cosine", "constant|linear|taper"},
                               {"--batch-size", "0", "1 to 65536"},
                               {"--batch-size", "65537", "1 to 65536"},
                               {"--epochs", "0", "a number > 0"},
                               {"--steps", "0", "a whole number >= 1"},
                               {"--seed", "-1", "a whole number >= 0"},
                               {"--seed", "18446744073709551616", "a whole number >= 0"},
                               {"--device", "gpu", "cpu|cuda|cuda:N|auto"},
                               {"--threads", "0", "1 to 1024"},
                               {"--step-time", "-1", "milliseconds, 0 to 3600000"},
                               {"--checkpoint-every", "x", "a whole number >= 0"},
                               {"--eval-every", "1e3", "a whole number >= 0"},
                               {"--run-dir", "", "DIR"}};
  for (const Wrong& wrong : all) {
    const ParsedOptions parsed = parse_with({wrong.option, wrong.value});
    CAPTURE(parsed.text);
    CHECK_FALSE(parsed.run);
    CHECK(parsed.exit_code == 2);
    CHECK(has(parsed.text, std::string("dpwa-train: ") + wrong.option + ": '" + wrong.value +
                               "' is not accepted; accepted: " + wrong.accepted));
    CHECK(parsed.text.find('\n') == parsed.text.size() - 1);
  }
}

TEST_CASE("what a wrong shard or split should have been is said in full") {
  const auto error = [](std::vector<const char*> arguments) { return parse_with(arguments).text; };
  CHECK(error({"--shard", "3/2"}) ==
        "dpwa-train: --shard: '3/2' is not accepted; accepted: K/N with 1 <= K <= N <= 65536, such "
        "as 2/4 (see dpwa-train --help)\n");
  CHECK(error({"--split", "dirichlet:0"}) ==
        "dpwa-train: --split: 'dirichlet:0' is not accepted; accepted: iid|dirichlet:ALPHA|shared, "
        "where ALPHA is a number > 0 (see dpwa-train --help)\n");
}

TEST_CASE("wrong usage is refused with exit code 2 in one line") {
  using Words = std::vector<const char*>;
  const std::pair<Words, std::string> all[] = {
      {{"--config", "c", "--speed", "9"}, "--speed"},
      {{"--dat", "synthetic", "--batchsize", "3", "--check", "DIR"},  // before what is missing
       "dpwa-train: unknown options '--dat', did you mean '--data'?; '--batchsize', did you mean "
       "'--batch-size'?; '--check'"},
      {{"--config"}, "--config"},
      {{"--config", "c", "--epochs", "1", "--steps", "5"}, "--epochs"},
      {{"--config", "c", "--resume"}, "--checkpoint"},
      {{"--config", "c", "--split", "shared", "--shard", "1/2"},
       "--shard: with --split shared every node has all the data"},
      {{"--data", "synthetic"},
       "dpwa-train: --config is missing; accepted: dpwa-train --config FILE (see dpwa-train "
       "--help)\n"},
      {{"--lr", "1", "--lr", "2"},
       "dpwa-train: --lr is given 2 times; accepted: once (see dpwa-train --help)\n"}};
  ::unsetenv("DPWA_DATA_DIR");
  for (const auto& [arguments, expected] : all) {
    const ParsedOptions parsed = parse(arguments);
    CAPTURE(parsed.text);
    CHECK_FALSE(parsed.run);
    CHECK(parsed.exit_code == 2);
    CHECK(has(parsed.text, expected));
    CHECK(parsed.text.find('\n') == parsed.text.size() - 1);
  }
}

TEST_CASE("the data directory comes from DPWA_DATA_DIR when no option gives it") {
  ::setenv("DPWA_DATA_DIR", "/from/environment", 1);
  CHECK(parse({"--config", "c"}).options.data_dir == "/from/environment");
  CHECK(parse({"--config", "c", "--data-dir", "/given"}).options.data_dir == "/given");
  ::unsetenv("DPWA_DATA_DIR");
}

TEST_CASE("help and version are answers, not errors") {
  const ParsedOptions help = parse({"--help"});
  CHECK_FALSE(help.run);
  CHECK(help.exit_code == 0);
  CHECK(has(help.text, "Exit codes"));
  const ParsedOptions version = parse({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(has(version.text, "dpwa-train "));
  CHECK(has(version.text, "(back ends: "));
}
