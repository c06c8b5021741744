// dpwa-measure-collective: a training step of backend collective, and all-reduces by its engines. A
// program of its own, because it needs LibTorch.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/collective/engine/process_group.h"
#include "bench/collective/models.h"
#include "bench/serve.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

// A group of processes of this machine on one engine, without any node: the basis of the back end.
struct BareGroup {
  std::shared_ptr<const collective::Engine> engine;
  std::unique_ptr<collective::ProcessGroup> members;

  void allreduce(const at::Tensor& tensor) const {
    std::vector<at::Tensor> list{tensor};
    members->c10d()->allreduce(list)->wait();
  }
};

// Rank 0 hosts the rendezvous at `port` of loopback. Throws collective::CollectiveError.
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

// The nanoseconds of each of so many.
template <typename Action>
std::vector<std::int64_t> timed(std::int64_t count, const Action& action) {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = SteadyClock::now();
    action();
    times.push_back(nanoseconds_since(from));
  }
  return times;
}

// A process that has told everything as it began.
class Told : public Measurer {
 public:
  explicit Told(Json facts) : facts_(std::move(facts)) {}
  Json facts() const override { return facts_; }
  Json answer(const Json&) override { throw std::logic_error("it has told everything"); }

 private:
  const Json facts_;
};

Json engines() {
  Json all = Json::array();
  for (const auto& known : collective::known_engines())
    all.push_back({{"name", known.name}, {"absent", known.absent}});
  return {{"engines", all}};
}

int rank_of(const Json& job) {
  if (job.contains("rank")) return job.at("rank");
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr) throw std::runtime_error("the job names no rank, and mpirun gives none");
  return std::atoi(text);
}

// One rank of a bare all-reduce. Job: {"engine", "nodes", "store_port", "bytes", "seconds", and the
// "rank"; without one it is that of mpirun}. Facts of rank 0: {"times_ns", "setting"}
Json allreduces(const Json& job) {
  at::set_num_threads(1);
  const int rank = rank_of(job);
  const auto group = form_bare_group(job.at("engine"), rank, job.at("nodes"), job.at("store_port"));
  const auto vector =
      at::full({job.at("bytes").get<std::int64_t>() / 4}, 0.F);  // whose sums stay finite
  // Connected, pages there.
  const auto once = timed(3, [&] { group.allreduce(vector); }).back();
  // The same number on all.
  const auto wanted = at::full({1}, 1e9 * job.at("seconds").get<double>() / double(once));
  const auto sum = wanted.to(at::kFloat);
  group.allreduce(sum);
  const auto count = std::llround(sum.item<double>() / group.members->size());
  const auto times =
      timed(std::clamp<std::int64_t>(count, 1, 1'000'000), [&] { group.allreduce(vector); });
  group.members->leave(std::chrono::seconds(5));
  if (rank != 0) return Json::object();
  return {{"times_ns", times}, {"setting", group.engine->setting()}};
}

constexpr double learning_rate = 0.001;

// One node that trains by backend collective; bench/peers/ddp_step.py answers the same, but for
// `allreduce`. All nodes of a group get the same commands. One more step or operation than asked
// for comes first, untimed: it brings the nodes together. Without communication nothing is sent,
// and the weights stay.
// Job: {"config", "name", "rank", "nodes", "store_port", "model", "batch", "threads", "seed"}
// Facts: {"parameters", "torch"}
//   -> {"do": "steps", "count", "communicate"}      <- {"times_ns", "cpu_s", "loss"}
//   -> {"do": "allreduce", "count"}                 <- {"times_ns", "cpu_s"}
class StepNode : public Measurer {
 public:
  explicit StepNode(const Json& job) {
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

  Json facts() const override { return {{"parameters", parameters_}, {"torch", TORCH_VERSION}}; }

  Json answer(const Json& command) override {
    const auto count = command.at("count").get<std::int64_t>();
    Json result;
    if (command.at("do") == "allreduce") {
      bare_.allreduce(flat_);
      result["times_ns"] = timed(count, [this] { bare_.allreduce(flat_); });
    } else {
      const bool communicate = command.at("communicate");
      for (auto& group : optimizer_->param_groups())
        group.options().set_lr(communicate ? learning_rate : 0);
      auto loss = step(communicate);
      result["times_ns"] = timed(count, [&] { loss = step(communicate); });
      result["loss"] = loss.item<double>();
    }
    result["cpu_s"] = processor_seconds();
    return result;
  }

 private:
  torch::Tensor step(bool communicate) {
    optimizer_->zero_grad();
    auto loss = torch::nn::functional::cross_entropy(model_->forward(batch_.input), batch_.labels);
    if (communicate) {
      loss.backward();
      adapter_->step(*optimizer_, loss);
    } else {
      const auto alone = adapter_->accumulate();
      loss.backward();
      optimizer_->step();
    }
    return loss;
  }

  torch::nn::Sequential model_{nullptr};
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  Batch batch_;
  std::int64_t parameters_ = 0;
  BareGroup bare_;
  at::Tensor flat_;
};

}  // namespace
}  // namespace dpwa::bench

int main(int argc, char** argv) {
  using namespace dpwa::bench;
  return serve(argc, argv,
               {{"collective", [](const Json& job) { return std::make_unique<StepNode>(job); }},
                {"engine", [](const Json& job) { return std::make_unique<Told>(allreduces(job)); }},
                {"engines", [](const Json&) { return std::make_unique<Told>(engines()); }}});
}
