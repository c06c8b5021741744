#include "bench/train/training_node.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "adapters/backend.h"
#include "bench/train/published_versions.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

constexpr double learning_rate = 0.001;
constexpr std::chrono::milliseconds between_exchanges{5};  // of a node that does not compute

at::Device device_of(const Json& job) {
  const at::Device device(job.value("device", "cpu"));
  const auto count = at::hasCUDA() ? at::getNumGPUs() : 0;
  if (!device.is_cpu() && std::cmp_greater_equal(std::max<int>(device.index(), 0), count))
    throw ConfigError("--device: '" + device.str() + "' is not accepted: LibTorch sees " +
                      std::to_string(count) + " GPU(s); accepted: cpu, or one of these");
  return device;
}

torch::nn::Sequential seeded_model(const Json& job) {
  torch::manual_seed(job.at("seed").get<std::uint64_t>());
  return make_classifier(job.at("model"));
}

}  // namespace

Training::Training(const Json& job) : device_(device_of(job)), model_(seeded_model(job)) {
  model_->to(device_);
  parameters_ = model_->parameters();
  optimizer_ = std::make_unique<torch::optim::SGD>(parameters_, learning_rate);
  set_batch(job);
}

Training::~Training() = default;

void Training::set_batch(const Json& job) {
  torch::manual_seed(job.at("seed").get<std::uint64_t>() + 1 + job.at("rank").get<std::uint64_t>());
  const Batch made = make_batch(job.at("model"), job.at("batch"));
  batch_ = {made.input.to(device_), made.labels.to(device_)};
}

std::int64_t Training::elements() const {
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters_) elements += parameter.numel();
  return elements;
}

at::Tensor Training::backward() {
  optimizer_->zero_grad();
  auto loss = torch::nn::functional::cross_entropy(model_->forward(batch_.input), batch_.labels);
  loss.backward();
  return loss;
}

void Training::copy_to_host() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (on_host_.size() == i)
      on_host_.push_back(at::empty(
          parameters_[i].sizes(),
          at::TensorOptions(parameters_[i].scalar_type()).pinned_memory(!device_.is_cpu())));
    on_host_[i].copy_(parameters_[i]);
  }
}

void Training::finish() const {
  if (device_.is_cpu()) return;
  const c10::impl::VirtualGuardImpl api(device_.type());
  api.synchronizeDevice(parameters_.front().device().index());
}

TrainingNode::TrainingNode(const Json& job) : job_(job), training_(job) {
  at::set_num_threads(job.at("threads"));
  const auto config = load_config(job.at("config"), job.at("name").get<std::string>());
  open_log(config).use();
  // Without the check of the order of calls, which would hide the class whose versions are counted.
  adapter_ = config.backend == Backend::gossip ? make_gossip(config, *training_.model())
                                               : make_adapter(config, *training_.model());
  adapter_->start();
  adapter_->set_batch_size(job.at("batch"));
}

TrainingNode::~TrainingNode() {
  adapter_->leave();
}

Json TrainingNode::facts() const {
  return {{"parameters", training_.elements()}, {"torch", TORCH_VERSION}};
}

Json TrainingNode::answer(const Json& command) {
  const std::string what = command.at("do");
  Json result;
  if (what == "steps") {
    result = steps(command);
  } else if (what == "serve") {
    serve(std::chrono::duration<double>(command.at("seconds").get<double>()));
  } else if (what == "batch") {
    job_["batch"] = command.at("batch");
    adapter_->set_batch_size(job_.at("batch"));
    training_.set_batch(job_);
    if (plain_) plain_->set_batch(job_);
  } else {
    throw std::invalid_argument("unknown command '" + what + "'");
  }
  result["cpu_s"] = processor_seconds();
  return result;
}

Json TrainingNode::steps(const Json& command) {
  const std::string loop = command.at("loop");
  const bool exchange = loop == "exchange";
  if (!exchange && !plain_) plain_ = std::make_unique<Training>(job_);
  Training& training = exchange ? training_ : *plain_;
  at::Tensor loss;
  const auto step = [&] {
    loss = training.backward();
    if (exchange) {
      const StepReport report = adapter_->step(training.optimizer(), loss);
      if (report.sent > 0 || report.outcome == Outcome::averaged) ++sent_;
      if (report.bytes > 0) ++exchanged_;
    } else {
      training.optimizer().step();
      if (loop == "blocking") training.copy_to_host();
    }
  };
  step();
  training.finish();
  const auto sent = published();
  const auto exchanged = exchanged_;
  const auto from = SteadyClock::now();
  Json result = {{"times_ns", timed(command.at("count"), step)}};
  training.finish();
  result["ns"] = nanoseconds_since(from);
  result["loss"] = loss.item<double>();
  result["published"] = published() - sent;
  result["exchanged"] = exchanged_ - exchanged;
  return result;
}

void TrainingNode::serve(std::chrono::duration<double> length) {
  const auto until = SteadyClock::now() + length;
  while (SteadyClock::now() < until) {
    adapter_->update_send({});
    adapter_->update_wait({});
    std::this_thread::sleep_for(between_exchanges);
  }
}

std::uint64_t TrainingNode::published() const {
  return sent_ + published_versions(*adapter_);
}

}  // namespace dpwa::bench
