#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/common/flat_parameters.h"
#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/train/checkpoint.h"
#include "examples/train/data_sets.h"
#include "examples/train/torch_setup.h"
#include "examples/train/trainer.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;

namespace {

// The optimizer step alone, with every loss it was given.
class RecordingAdapter final : public Adapter {
 public:
  Place place() const override { return {}; }
  void start() override {}
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    optimizer.step();
    losses.push_back(loss.item<float>());
    rates.push_back(optimizer.param_groups()[0].options().get_lr());
    return {};
  }
  StepReport skip_step(torch::optim::Optimizer&, const torch::Tensor&) override { return {}; }
  void update_send(const torch::Tensor&) override {}
  StepReport update_wait(const torch::Tensor&) override { return {}; }
  void reload(const Config&) override {}
  FinishReport finish() override { return {}; }
  void leave() override {}
  ResumeState resume_state() const override { return {}; }
  void restore(const ResumeState&) override {}

  std::vector<float> losses;
  std::vector<double> rates;
};

const TrainTest& small_set() {
  static const TrainTest data = [] {
    TrainTest all = make_synthetic(1);
    all.train.labels.resize(300);
    all.test.labels.resize(100);
    return all;
  }();
  return data;
}

// Of a run whose progress nobody sees; without a directory it writes nothing.
Report silent_report(const std::filesystem::path& run_dir = {}) {
  TrainOptions options;
  options.quiet = true;
  options.run_dir = run_dir;
  return {options, "w1", /*resumed=*/false, /*steps=*/100, LossWatch(10, 100, "")};
}

// One process of a run.
struct Run {
  const TrainTest& data = small_set();
  TrainOptions options;
  std::shared_ptr<Classifier> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  RecordingAdapter adapter;
  RunPosition position;

  Run(ModelKind kind, OptimizerKind optimizer_kind) {
    options.optimizer = optimizer_kind;
    options.lr = 0.01;
    model = make_model(kind, data.train, 5);
    torch::manual_seed(SeedStreams(5).of_rank(SeedRole::noise, 0));
    optimizer = make_optimizer(options, model->parameters());
  }

  static RunIdentity identity() {
    RunIdentity identity;
    identity.node = "w1";
    return identity;
  }

  // A budget of `total` samples, stopped before its end at `until`.
  LoopEnd train(std::uint64_t total, std::uint64_t until = ~0ULL) {
    Shard shard;
    for (std::uint32_t i = 0; i < data.train.size(); ++i) shard.push_back(i);
    std::array<std::int64_t, 2> state{};
    Samples samples = Samples::own(SampleStream(shard, 7), 32, total, state);
    options.schedule = Schedule::linear;
    options.eval_every = 5;  // must not disturb the sequence
    BatchLoss loss_of(*model, data.train);
    Report report = silent_report();
    TrainerParts parts{options, *model, *optimizer, adapter, loss_of, data.test, samples, report};
    parts.stop_requested = [&] { return samples.position() >= until; };
    Trainer trainer(parts, position);
    const LoopEnd end = trainer.run();
    position = trainer.position();
    return end;
  }
  std::string pack() const {
    return pack_checkpoint({identity(), position, {3.5, {{"lineage", 1}}}}, *model, *optimizer);
  }
  RunState unpack(const std::string& body) {
    const RunState state = unpack_checkpoint(body, identity(), *model, *optimizer);
    position = state.position;
    return state;
  }
};

bool same_tensors(const Classifier& left, const Classifier& right) {
  const auto all = [](const Classifier& model) {
    auto tensors = model.parameters();
    for (const auto& buffer : model.buffers()) tensors.push_back(buffer);
    return tensors;
  };
  const auto a = all(left);
  const auto b = all(right);
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = at::equal(a[i], b[i]);
  return same;
}

}  // namespace

TEST_CASE(
    "a resumed run gives the losses and parameters of one that was never interrupted, bit by bit") {
  const std::uint64_t half = 32 * 13;  // in the second pass over the shard
  const std::uint64_t whole = 32 * 30 + 7;
  for (const auto kind : {ModelKind::mlp, ModelKind::cnn})
    for (const auto optimizer :
         {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam}) {
      CAPTURE(dpwa::config::name_in(model_names, kind));
      CAPTURE(dpwa::config::name_in(optimizer_names, optimizer));
      Run straight(kind, optimizer);
      REQUIRE(straight.train(whole) == LoopEnd::done);

      Run first(kind, optimizer);
      REQUIRE(first.train(whole, half) == LoopEnd::stopped);
      const std::string body = first.pack();
      Run second(kind, optimizer);
      torch::manual_seed(99);  // another process has another generator
      const RunState state = second.unpack(body);
      CHECK(state.adapter.clock == 3.5);
      CHECK(state.position.step == 13);
      REQUIRE(second.train(whole) == LoopEnd::done);

      auto losses = first.adapter.losses;
      losses.insert(losses.end(), second.adapter.losses.begin(), second.adapter.losses.end());
      CHECK(losses.size() == 31);
      CHECK(losses == straight.adapter.losses);
      CHECK(same_tensors(*second.model, *straight.model));
      CHECK(second.position.samples == whole);
    }
}

TEST_CASE("the linear schedule falls from the given rate towards 0 over the budget") {
  Run run(ModelKind::mlp, OptimizerKind::sgd);
  run.train(32 * 4);
  CHECK(run.adapter.rates.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(run.adapter.rates[i] == doctest::Approx(0.01 * (1 - 0.25 * static_cast<double>(i))));
}

TEST_CASE("restoring keeps the identity and storage of the parameters") {
  Run run(ModelKind::mlp, OptimizerKind::momentum);
  run.train(64);
  const std::string body = run.pack();
  Run other(ModelKind::mlp, OptimizerKind::momentum);
  const auto before = other.model->parameters();
  std::vector<const void*> storage;
  for (const auto& parameter : before) storage.push_back(parameter.const_data_ptr());
  other.unpack(body);
  const auto after = other.model->parameters();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].is_same(before[i]));
    CHECK(after[i].const_data_ptr() == storage[i]);
    CHECK(after[i].requires_grad());
  }
  CHECK(same_tensors(*run.model, *other.model));
}

// Earlier versions laid all parameters before all buffers; a checkpoint knows tensors by name.
TEST_CASE("a checkpoint fits a model whatever the order of its tensors in memory") {
  Run plain(ModelKind::cnn, OptimizerKind::momentum);
  plain.train(32 * 5);
  Run flat(ModelKind::cnn, OptimizerKind::momentum);
  const FlatParameters memory(*flat.model);
  const auto& tensors = memory.manifest().tensors();
  const auto place_of = [&](const char* name) {
    return std::ranges::find(tensors, name, &TensorSpec::name) - tensors.begin();
  };
  REQUIRE(place_of("bn1.running_mean") < place_of("fc1.weight"));
  flat.unpack(plain.pack());
  CHECK(same_tensors(*plain.model, *flat.model));
  CHECK_NOTHROW(memory.check());
  Run back(ModelKind::cnn, OptimizerKind::momentum);
  back.unpack(flat.pack());
  CHECK(same_tensors(*plain.model, *back.model));
}

TEST_CASE("a parameter that is a view into a large buffer is stored by itself") {
  Run run(ModelKind::mlp, OptimizerKind::sgd);
  const std::size_t plain = run.pack().size();
  const auto flat = at::zeros({10'000'000});
  auto parameters = run.model->parameters();
  const torch::NoGradGuard no_grad;
  auto view = flat.narrow(0, 0, parameters[0].numel()).view(parameters[0].sizes());
  view.copy_(parameters[0]);
  parameters[0].set_data(view);
  CHECK(run.pack().size() < plain + 4096);
}

TEST_CASE("memory refused anywhere while a checkpoint is packed is an error that can be caught") {
  at::set_num_threads(1);  // OpenMP ends the process when it gets no thread
  Run run(ModelKind::resnet18, OptimizerKind::sgd);
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  std::size_t refused = 0, packed = 0;
  // The parameters have 45 MB: none of it, the copies, a part of the archive, all.
  for (rlim_t more_bytes = 0; more_bytes < 320'000'000; more_bytes += 10'000'000) {
    ::malloc_trim(0);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit tight{pages * static_cast<rlim_t>(::getpagesize()) + more_bytes, before.rlim_max};
    ::setrlimit(RLIMIT_AS, &tight);
    std::string body;
    try {
      body = run.pack();
    } catch (const std::exception&) {
    }
    ::setrlimit(RLIMIT_AS, &before);
    if (body.empty()) {
      ++refused;
    } else {
      ++packed;
      CHECK(run.unpack(body).adapter.clock == 3.5);
    }
  }
  CHECK(refused > 5);
  CHECK(packed > 5);
}

TEST_CASE("a checkpoint that does not fit is refused in one line") {
  Run run(ModelKind::mlp, OptimizerKind::momentum);
  run.train(64);
  const std::string body = run.pack();
  Run other(ModelKind::cnn, OptimizerKind::momentum);
  const auto refusal = [&](const std::string& text) {
    return test::message_of<ConfigError>([&] { other.unpack(text); });
  };
  for (const std::string& text :
       {body, std::string("short"), std::string(100, '\xff'), body.substr(0, body.size() / 2)}) {
    const std::string why = refusal(text);
    CAPTURE(why);
    CHECK(test::has(why, "--resume: the checkpoint does not fit this run: "));
    CHECK_FALSE(test::has(why, "\n"));
  }
  RunIdentity here = Run::identity();
  here.node = "w2";
  const auto why = test::message_of<ConfigError>(
      [&] { unpack_checkpoint(body, here, *run.model, *run.optimizer); });
  CHECK(test::has(why, "--resume: the checkpoint has --name \"w1\", this run \"w2\""));
}

TEST_CASE("a loss that is not finite ends training before the step is made") {
  Run run(ModelKind::mlp, OptimizerKind::sgd);
  run.train(64);
  {
    const torch::NoGradGuard no_grad;
    run.model->parameters()[0].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  CHECK(run.train(640) == LoopEnd::diverged);
  CHECK(run.adapter.losses.size() == 2);
  CHECK(run.position.step == 2);
}

TEST_CASE("every line of the metrics has the loss of its own step, however late it is known") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    const test::TemporaryDirectory directory;
    Run run(ModelKind::mlp, OptimizerKind::sgd);
    std::array<std::int64_t, 2> state{};
    Samples samples = Samples::own(SampleStream({0, 1, 2, 3}, 1), 32, 32 * 5, state);
    TrainOptions options;
    options.schedule = Schedule::constant;
    options.eval_every = 2;
    Report report = silent_report(directory.path());
    BatchLoss loss_of(*run.model, run.data.train);
    TrainerParts parts{options, *run.model,    *run.optimizer, run.adapter,
                       loss_of, run.data.test, samples,        report};
    parts.late_losses = late;
    Trainer trainer(parts, {});
    CHECK(trainer.run() == LoopEnd::done);
    report.flush();
    std::ifstream file(directory.path() / "w1.metrics.jsonl");
    std::vector<float> losses;
    std::vector<std::string> steps;
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line);
      const bool evaluation = json.contains("test_loss");
      steps.push_back(std::to_string(json.at("step").get<int>()) + (evaluation ? "e" : ""));
      if (!evaluation) losses.push_back(json.at("loss").get<float>());
    }
    CHECK(losses == run.adapter.losses);
    CHECK(steps == std::vector<std::string>{"1", "2", "2e", "3", "4", "4e", "5"});
  }
}

TEST_CASE("a late loss that is not finite ends training before the next step is made") {
  Run run(ModelKind::mlp, OptimizerKind::sgd);
  std::array<std::int64_t, 2> state{};
  Samples samples = Samples::own(SampleStream({0, 1, 2, 3}, 1), 32, 32 * 100, state);
  TrainOptions options;
  options.schedule = Schedule::constant;
  BatchLoss loss_of(*run.model, run.data.train);
  Report report = silent_report();
  TrainerParts parts{options, *run.model,    *run.optimizer, run.adapter,
                     loss_of, run.data.test, samples,        report};
  parts.late_losses = true;
  parts.between_steps = [&] {
    const torch::NoGradGuard no_grad;
    run.model->parameters()[0].fill_(std::numeric_limits<float>::quiet_NaN());
  };
  Trainer trainer(parts, {});
  CHECK(trainer.run() == LoopEnd::diverged);
  CHECK(run.adapter.losses.size() == 2);  // the second one showed it
}

TEST_CASE("a request to stop ends training after the current step") {
  Run run(ModelKind::mlp, OptimizerKind::sgd);
  std::array<std::int64_t, 2> state{};
  Samples samples = Samples::own(SampleStream({0, 1, 2, 3}, 1), 32, 32 * 100, state);
  TrainOptions options;
  options.schedule = Schedule::constant;
  options.checkpoint_every = 2;
  std::vector<std::uint64_t> checkpoints;
  BatchLoss loss_of(*run.model, run.data.train);
  Report report = silent_report();
  TrainerParts parts{options, *run.model,    *run.optimizer, run.adapter,
                     loss_of, run.data.test, samples,        report};
  parts.stop_requested = [&] { return run.adapter.losses.size() == 5; };
  parts.checkpoint = [&](const RunPosition& position) { checkpoints.push_back(position.step); };
  Trainer trainer(parts, {});
  CHECK(trainer.run() == LoopEnd::stopped);
  CHECK(trainer.position().step == 5);
  CHECK(trainer.position().samples == 5 * 32);
  CHECK(checkpoints == std::vector<std::uint64_t>{2, 4});
}
