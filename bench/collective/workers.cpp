#include "bench/collective/workers.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/adapter.h"
#include "bench/collective/models.h"
#include "bench/measure/machine.h"
#include "bench/worker/child.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

using std::chrono::steady_clock;

int rank_of(const Json& job) {
  if (const auto rank = job.find("rank"); rank != job.end()) return *rank;
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr) throw std::runtime_error("the job names no rank, and mpirun gives none");
  return std::atoi(text);
}

// Seconds of one all-reduce.
double allreduce(const collective::ProcessGroup& group, const at::Tensor& tensor) {
  const auto from = steady_clock::now();
  std::vector<at::Tensor> list{tensor};
  group.c10d()->allreduce(list)->wait();
  return std::chrono::duration<double>(steady_clock::now() - from).count();
}

Json measure_allreduce(const Json& job, int rank) {
  at::set_num_threads(1);
  const auto [engine, group] =
      form_bare_group(job.at("engine"), rank, job.at("nodes"), job.at("store_port"));
  const auto vector =
      at::full({job.at("bytes").get<std::int64_t>() / 4}, 0.F);  // whose sums stay finite
  double once = 0;
  for (int i = 0; i < 3; ++i) once = allreduce(*group, vector);  // connected, pages there
  // The same number on all.
  const auto wanted = at::full({1}, job.at("seconds").get<double>() / std::max(once, 1e-6));
  const auto sum = wanted.to(at::kFloat);
  allreduce(*group, sum);
  const auto count =
      std::clamp<std::int64_t>(std::llround(sum.item<double>() / group->size()), 1, 1'000'000);
  std::vector<double> times;
  for (std::int64_t i = 0; i < count; ++i) times.push_back(1e6 * allreduce(*group, vector));
  group->leave(std::chrono::seconds(5));
  return {{"times_us", times}, {"cpu_s", processor_seconds()}, {"setting", engine->setting()}};
}

constexpr double learning_rate = 0.001;

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

template <typename Action>
Json timed(std::int64_t count, const Action& action) {
  std::vector<double> times;
  action();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = std::chrono::steady_clock::now();
    action();
    times.push_back(microseconds(std::chrono::steady_clock::now() - from));
  }
  return {{"times_us", times}};
}

class StepWorker {
 public:
  explicit StepWorker(const Json& job) {
    at::set_num_threads(job.at("threads"));
    const std::string kind = job.at("model");
    const auto seed = job.at("seed").get<std::uint64_t>();
    torch::manual_seed(seed);
    model_ = make_classifier(kind);
    const auto config = load_config(job.at("config"), job.at("name").get<std::string>());
    open_log(config).use();
    adapter_ = make_adapter(config, *model_);
    adapter_->start();
    adapter_->set_batch_size(job.at("batch"));
    optimizer_ = std::make_unique<torch::optim::SGD>(model_->parameters(), learning_rate);
    torch::manual_seed(seed + 1 + job.at("rank").get<std::uint64_t>());
    batch_ = make_batch(kind, job.at("batch"));
    for (const auto& parameter : model_->parameters()) parameters_ += parameter.numel();
    bare_ = form_bare_group("gloo", job.at("rank"), job.at("nodes"), job.at("store_port"));
    flat_ = at::full({parameters_}, 0.F);  // whose sums stay finite
  }

  std::int64_t parameters() const { return parameters_; }

  Json answer(const Json& command) {
    const auto count = command.at("count").get<std::int64_t>();
    Json result;
    if (command.at("do") == "allreduce") {
      result = timed(count, [this] {
        std::vector<at::Tensor> list{flat_};
        bare_.members->c10d()->allreduce(list)->wait();
      });
    } else {
      const bool communicate = command.at("communicate");
      set_learning_rate(communicate ? learning_rate : 0);
      torch::Tensor loss;
      result = timed(count, [&] { loss = communicate ? step() : local_step(); });
      result["loss"] = loss.item<double>();
    }
    result["cpu_s"] = processor_seconds();
    return result;
  }

 private:
  torch::Tensor forward() {
    optimizer_->zero_grad();
    return torch::nn::functional::cross_entropy(model_->forward(batch_.input), batch_.labels);
  }
  torch::Tensor step() {
    auto loss = forward();
    loss.backward();
    adapter_->step(*optimizer_, loss);
    return loss;
  }
  torch::Tensor local_step() {
    auto loss = forward();
    const auto alone = adapter_->accumulate();
    loss.backward();
    optimizer_->step();
    return loss;
  }
  void set_learning_rate(double rate) {
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(rate);
  }

  std::shared_ptr<Classifier> model_;
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  Batch batch_;
  std::int64_t parameters_ = 0;
  BareGroup bare_;
  at::Tensor flat_;
};

}  // namespace

BareGroup form_bare_group(const std::string& engine, int rank, int size, std::uint16_t port) {
  constexpr auto patience = std::chrono::seconds(60);
  auto kind = collective::EngineKind::automatic;
  for (const auto& known : collective::known_engines())
    if (known.name == engine) kind = known.kind;
  collective::GroupOptions options;
  options.rank = rank;
  options.size = size;
  auto meeting = rank == 0 ? collective::Rendezvous::listen("127.0.0.1", patience, port)
                           : collective::Rendezvous::connect("127.0.0.1", port, patience);
  BareGroup group{collective::make_engine(kind), nullptr};
  group.members = collective::ProcessGroup::form(group.engine, meeting, options);
  meeting.leave(size - 1, patience);
  return group;
}

int run_engine_worker(const Json& job) {
  JsonLines lines(STDIN_FILENO, STDOUT_FILENO);
  try {
    const int rank = rank_of(job);
    const Json measured = measure_allreduce(job, rank);
    if (rank == 0) lines.send(measured);
  } catch (const std::exception& error) {
    lines.send({{"error", error.what()}});
    return 1;
  }
  return 0;
}

int run_step_worker() {
  JsonLines lines(STDIN_FILENO, STDOUT_FILENO);
  try {
    const auto job = lines.receive();
    if (!job) return 0;
    StepWorker worker(*job);
    lines.send({{"ready", true}, {"parameters", worker.parameters()}, {"torch", TORCH_VERSION}});
    while (const auto command = lines.receive()) lines.send(worker.answer(*command));
  } catch (const std::exception& error) {
    lines.send({{"error", error.what()}});
    return 1;
  }
  return 0;
}

}  // namespace dpwa::bench
