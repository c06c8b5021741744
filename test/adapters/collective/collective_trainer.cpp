// A small training program under backend collective, for tests that kill it: collective_trainer
// FILE NAME STEPS STEP_MS HIDDEN OUTPUT. HIDDEN below 0: without the layer in the middle. Trains
// until the clock is STEPS; writes a line of JSON for each step, with a checksum of the model and
// the place in the data that the batch was taken from. On test_device().
#include <ATen/Parallel.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "adapters/adapter.h"
#include "dpwa/base/checksum.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/rules/step_report.h"
#include "test/adapters/test_device.h"
#include "test/support/temporary_directory.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t batch = 4;
constexpr std::int64_t inputs = 16;

struct Net : torch::nn::Module {
  explicit Net(std::int64_t hidden) {
    first = register_module("first", torch::nn::Linear(inputs, hidden));
    second = register_module("second", torch::nn::Linear(hidden, hidden));
    third = register_module("third", torch::nn::Linear(hidden, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return third(torch::tanh(second(torch::tanh(first(x)))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};

std::uint32_t checksum(const torch::nn::Module& net) {
  std::uint32_t sum = 0;
  for (const auto& parameter : net.parameters()) {
    const auto tensor = parameter.detach().cpu();
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    sum = sum * 31 + dpwa::crc32c({data, tensor.nbytes()});
  }
  return sum;
}

int train(const std::string& file, const std::string& name, double steps,
          std::chrono::milliseconds step_time, std::int64_t hidden, std::ofstream& out) {
  const dpwa::Config config = dpwa::load_config(file, name);
  dpwa::open_log(config).use();
  torch::manual_seed(7);
  const at::Device device = dpwa::test::test_device();
  Net net(hidden);
  net.to(device);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  auto cursor = torch::zeros({1}, torch::kLong);
  auto adapter = dpwa::make_adapter(config, net);
  adapter->share(cursor);
  adapter->start();
  double clock = adapter->resume_state().clock;
  while (clock < steps) {
    const auto begun = Clock::now();
    const auto place = adapter->place();
    const std::int64_t from = cursor.item<std::int64_t>();
    cursor += batch * static_cast<std::int64_t>(place.size);
    torch::manual_seed(from + batch * static_cast<std::int64_t>(place.rank));
    const auto x = torch::randn({batch, inputs}).to(device);
    const auto y = x.narrow(1, 0, 3).argmax(1);
    optimizer.zero_grad();
    const auto loss = torch::cross_entropy_loss(net.forward(x), y);
    loss.backward();
    const auto report = adapter->step(optimizer, loss);
    clock = report.clock;
    out << nlohmann::json{{"clock", clock},
                          {"sum", checksum(net)},
                          {"participants", report.participants},
                          {"outcome", dpwa::to_string(report.outcome)},
                          {"rank", place.rank},
                          {"size", place.size},
                          {"from", from},
                          {"ms",
                           std::chrono::duration<double, std::milli>(Clock::now() - begun).count()}}
               .dump()
        << std::endl;
    if (dpwa::stop_signal::take_reload()) adapter->reload(dpwa::load_config(file, name));
    if (adapter->should_stop(dpwa::stop_signal::received() != 0)) {
      adapter->leave();
      return 128 + dpwa::stop_signal::received();
    }
    std::this_thread::sleep_until(begun + step_time);
  }
  const auto report = adapter->finish();
  out << nlohmann::json{{"finished", true},
                        {"sum", checksum(net)},
                        {"participants", report.participants}}
             .dump()
      << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) {
    std::cerr << "collective_trainer FILE NAME STEPS STEP_MS HIDDEN OUTPUT\n";
    return 2;
  }
  at::set_num_threads(1);
  dpwa::stop_signal::install();
  dpwa::stop_signal::defer(true);
  std::ofstream out = dpwa::test::append_lines(arguments[6]);
  try {
    return train(arguments[1], arguments[2], std::stod(arguments[3]),
                 std::chrono::milliseconds(std::stol(arguments[4])), std::stol(arguments[5]), out);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
