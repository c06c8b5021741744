#include "examples/train/torch_setup.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/launch/place.h"

namespace dpwa::train {

namespace {

c10::Device resolve(const DeviceChoice& choice, const std::string& option, const Config& config) {
  using Kind = DeviceChoice::Kind;
  if (choice.kind == Kind::cpu) return c10::kCPU;
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (count == 0) {
    if (choice.kind == Kind::automatic) return c10::kCPU;
    throw ConfigError(option + ": 'cuda' is not accepted: " +
                      (at::Context::hasCUDART() ? "LibTorch finds no GPU here, or no driver; "
                                                : "this LibTorch was built without CUDA; ") +
                      "accepted here: cpu" + (option == "--device" ? ", auto" : ":N"));
  }
  if (choice.index >= count)
    throw ConfigError(
        option + ": 'cuda:" + std::to_string(choice.index) +
        "' is not accepted: this machine has " + std::to_string(count) +
        " CUDA device(s); accepted here: cuda:0 to cuda:" + std::to_string(count - 1));
  if (choice.index >= 0) return {c10::kCUDA, static_cast<c10::DeviceIndex>(choice.index)};
  const int index = own_gpu(launch::local_rank(config, launch::launcher_environment()), count);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace

void make_current(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

std::vector<c10::Device> resolve_devices(const TrainOptions& options, const Config& config) {
  if (options.devices.empty()) return {resolve(options.device, "--device", config)};
  std::vector<c10::Device> devices;
  for (const auto& choice : options.devices)
    devices.push_back(resolve(choice, "--devices", config));
  return devices;
}

void set_compute_threads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options,
                                                        std::vector<torch::Tensor> parameters) {
  namespace optim = torch::optim;
  if (options.optimizer == OptimizerKind::adam)
    return std::make_unique<optim::Adam>(std::move(parameters), optim::AdamOptions(options.lr));
  const double momentum = options.optimizer == OptimizerKind::momentum ? 0.9 : 0.0;
  return std::make_unique<optim::SGD>(std::move(parameters),
                                      optim::SGDOptions(options.lr).momentum(momentum));
}

}  // namespace dpwa::train
