#include "adapters/parallel/device_replicas.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/test_device.h"

using namespace dpwa;
using dpwa::test::test_device;
using torch::Tensor;

namespace {

struct Net : torch::nn::Module {
  explicit Net(bool norm = false, double dropped = 0) {
    first = register_module("first", torch::nn::Linear(6, 8));
    second = register_module("second", torch::nn::Linear(8, 3));
    unused = register_module("unused", torch::nn::Linear(2, 2));
    frozen = register_parameter("frozen", torch::randn({3}), /*requires_grad=*/false);
    tied = register_parameter("tied", second->bias);
    if (norm) normed = register_module("normed", torch::nn::BatchNorm1d(8));
    dropout = register_module("dropout", torch::nn::Dropout(dropped));
  }
  Tensor forward(const Tensor& x) {
    Tensor hidden = first(x);
    if (normed) hidden = normed(hidden);
    return second(dropout(torch::tanh(hidden))) + frozen + tied;
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, unused{nullptr};
  torch::nn::BatchNorm1d normed{nullptr};
  torch::nn::Dropout dropout{nullptr};
  Tensor frozen, tied;
};

std::shared_ptr<Net> net_of(std::int64_t seed, bool norm = false, double dropped = 0) {
  torch::manual_seed(seed);
  auto net = std::make_shared<Net>(norm, dropped);
  net->to(test_device());
  return net;
}

struct Data {
  Tensor x, y;
};

Data data_of(std::int64_t rows) {
  torch::manual_seed(77);
  return {torch::randn({rows, 6}).to(test_device()), torch::randint(3, {rows}).to(test_device())};
}

Tensor loss_of(Net& net, const Data& data, std::int64_t from, std::int64_t count) {
  return torch::cross_entropy_loss(net.forward(data.x.narrow(0, from, count)),
                                   data.y.narrow(0, from, count));
}

DeviceReplicas<Net>::LossOf parts_of(const Data& data) {
  return [&data](Net& net, c10::Device, const ItemRange& part) {
    return loss_of(net, data, static_cast<std::int64_t>(part.from),
                   static_cast<std::int64_t>(part.count));
  };
}

DeviceReplicas<Net> replicas_of(Net& net, std::size_t devices, bool norm = false,
                                double dropped = 0) {
  return {net, std::vector<c10::Device>(devices, test_device()),
          [norm, dropped] { return std::make_shared<Net>(norm, dropped); }};
}

double relative(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

// Two dtypes, a convolution whose weights are in another order, a layer that one device alone uses,
// tied weights and a table with sparse gradients.
struct Mixed : torch::nn::Module {
  Mixed() {
    order(torch::MemoryFormat::ChannelsLast);
    wide->to(torch::kDouble);
    tied = register_parameter("tied", first->weight);
    table->options.sparse(true);
  }
  void order(torch::MemoryFormat format) {
    const torch::NoGradGuard no_grad;
    conv->weight.set_data(conv->weight.detach().contiguous(format));
  }
  Tensor forward(const Tensor& x, bool all) {
    Tensor y = conv(x.view({-1, 3, 2, 1}).expand({-1, 3, 2, 2})).mean({2, 3});
    y = torch::tanh(first(y)) + torch::linear(y, tied);
    if (all) y = y + some(y);
    return wide(y.to(torch::kDouble)) +
           table(torch::arange(3, x.options().dtype(torch::kLong))).sum();
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 5, 2));
  torch::nn::Linear first = register_module("first", torch::nn::Linear(5, 5));
  torch::nn::Linear some = register_module("some", torch::nn::Linear(5, 5));
  torch::nn::Linear wide = register_module("wide", torch::nn::Linear(5, 3));
  torch::nn::Embedding table = register_module("table", torch::nn::Embedding(7, 2));
  Tensor tied;
};

std::shared_ptr<Mixed> mixed_of(std::int64_t seed) {
  torch::manual_seed(seed);
  auto net = std::make_shared<Mixed>();
  net->to(test_device());
  return net;
}

Tensor mixed_loss(Mixed& net, const Data& data, const ItemRange& part) {
  const auto from = static_cast<std::int64_t>(part.from);
  const auto count = static_cast<std::int64_t>(part.count);
  return torch::cross_entropy_loss(net.forward(data.x.narrow(0, from, count), from == 0),
                                   data.y.narrow(0, from, count));
}

// Many parameters, and a buffer of another dtype.
struct Chain : torch::nn::Module {
  explicit Chain(int length) {
    for (int i = 0; i < length; ++i) register_parameter("p" + std::to_string(i), torch::ones({6}));
    register_buffer("wide", torch::ones({3}, torch::kDouble));
  }
  Tensor loss(Tensor y) {
    for (const Tensor& parameter : parameters()) y = y * parameter;
    return y.square().mean();
  }
};

// How often each operation of LibTorch was called while this object lives, on all threads.
class Operations {
 public:
  Operations()
      : callback_(at::addGlobalCallback(
            at::RecordFunctionCallback([](const at::RecordFunction& operation) {
              const std::scoped_lock lock(mutex_);
              ++counts_[operation.name()];
              return std::unique_ptr<at::ObserverContext>();
            }).scopes({at::RecordScope::FUNCTION}))) {
    const std::scoped_lock lock(mutex_);
    counts_.clear();
  }
  ~Operations() { at::removeCallback(callback_); }
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  std::vector<int> count(const std::vector<std::string>& names) const {
    const std::scoped_lock lock(mutex_);
    std::vector<int> found;
    for (const auto& name : names) found.push_back(counts_[name]);
    return found;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::map<std::string, int> counts_;
  const at::CallbackHandle callback_;
};

}  // namespace

TEST_CASE("devices with shares of a batch compute the gradients that one device does") {
  for (std::size_t devices = 1; devices <= 4; ++devices) {
    for (std::int64_t batch = 1; batch <= static_cast<std::int64_t>(4 * devices); ++batch) {
      INFO(devices << " devices, " << batch << " samples");
      const Data data = data_of(batch);
      const auto one = net_of(5);
      const Tensor expected = loss_of(*one, data, 0, batch);
      expected.backward();
      const auto net = net_of(5);
      auto replicas = replicas_of(*net, devices);
      const Tensor loss = replicas.loss(static_cast<std::uint64_t>(batch), parts_of(data));
      CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(1e-6));
      CHECK_FALSE(net->first->weight.grad().defined());  // not before backward()
      loss.backward();
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        const Tensor wanted = one->parameters()[i].grad();
        const Tensor got = net->parameters()[i].grad();
        REQUIRE(got.defined() == wanted.defined());
        if (got.defined()) CHECK(relative(got, wanted) < 1e-6);
      }
      CHECK_FALSE(net->unused->weight.grad().defined());
      CHECK_FALSE(net->frozen.grad().defined());
    }
  }
}

TEST_CASE("devices train on: they follow the weights, the gradients add up and can be scaled") {
  const Data data = data_of(32);
  const auto one = net_of(5);
  const auto net = net_of(5);
  auto replicas = replicas_of(*net, 3);
  torch::optim::SGD of_one(one->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD of_all(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 30; ++step) {
    of_one.zero_grad();
    of_all.zero_grad();
    loss_of(*one, data, 0, 32).backward();
    (loss_of(*one, data, 0, 5) * 0.5).backward();
    replicas.loss(32, parts_of(data)).backward();
    (replicas.loss(5, parts_of(data)) * 0.5).backward();
    of_one.step();
    of_all.step();
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    CHECK(relative(net->parameters()[i], one->parameters()[i]) < 1e-5);
}

TEST_CASE("gradients are bit for bit those of shares that are weighted and added one by one") {
  const Data data = data_of(11);
  for (const auto host_weights : {HostWeights::shared, HostWeights::copied}) {
    const auto net = mixed_of(5);
    DeviceReplicas<Mixed> replicas(
        *net, std::vector<c10::Device>(3, test_device()), [] { return std::make_shared<Mixed>(); },
        host_weights);
    // Copies keep the first order of memory, and some processors round otherwise in another one.
    const auto copy = mixed_of(5);
    for (int step = 0; step < 3; ++step) {
      if (step == 1) net->order(torch::MemoryFormat::Contiguous);
      for (std::size_t i = 0; i < copy->parameters().size(); ++i) {
        const torch::NoGradGuard no_grad;
        copy->parameters()[i].copy_(net->parameters()[i]);
      }
      std::vector<Tensor> sums(net->parameters().size());
      for (const ItemRange part : {ItemRange{0, 4}, ItemRange{4, 4}, ItemRange{8, 3}}) {
        const bool by_copy = part.from > 0 && host_weights == HostWeights::copied;
        Mixed& one = by_copy ? *copy : *net;
        const auto gradients =
            torch::autograd::grad({mixed_loss(one, data, part)}, one.parameters(), {}, {},
                                  /*create_graph=*/false, /*allow_unused=*/true);
        const double weight = static_cast<double>(part.count) / 11;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          if (!gradients[i].defined()) continue;
          sums[i] = sums[i].defined() ? sums[i].add_(gradients[i], weight) : gradients[i] * weight;
        }
      }
      net->zero_grad();
      replicas
          .loss(11, [&](Mixed& one, c10::Device,
                        const ItemRange& part) { return mixed_loss(one, data, part); })
          .backward();
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        CAPTURE(net->named_parameters().keys()[i]);
        Tensor parameter = net->parameters()[i];
        CHECK(parameter.grad().layout() == sums[i].layout());
        CHECK(torch::equal(parameter.grad().to_dense(), sums[i].to_dense()));
      }
      for (std::size_t i = 0; i < sums.size(); ++i)
        if (i == 0 || !net->parameters()[i].is_same(net->tied))
          net->parameters()[i].sub_(sums[i].to_dense(), 0.1);
    }
  }
}

TEST_CASE("weights leave, and gradients are added, in one operation for each dtype and device") {
  const Data data = data_of(9);
  std::vector<int> copies;
  for (const int length : {2, 20}) {
    Chain net(length);
    DeviceReplicas<Chain> replicas(
        net, std::vector<c10::Device>(3, c10::kCPU),
        [&] { return std::make_shared<Chain>(length); }, HostWeights::copied);
    const auto x = data.x.cpu();
    const Operations operations;
    replicas.loss(9, [&](Chain& one, c10::Device, const ItemRange& part) {
      return one.loss(
          x.narrow(0, static_cast<std::int64_t>(part.from), static_cast<std::int64_t>(part.count)));
    });
    // Two dtypes leave, and one comes back; two additions are those of the losses.
    CHECK(operations.count({"aten::cat", "aten::mul_", "aten::add_"}) ==
          std::vector<int>{2 + 3, 1, 2 + 2});
    copies.push_back(operations.count({"aten::copy_"}).front());
  }
  CHECK(copies[0] == copies[1]);  // with the fixed number of LibTorch's own
}

TEST_CASE("replicas on the CPU share the memory of the weights, wherever it moves") {
  const Data data = [] {
    const Data anywhere = data_of(8);
    return Data{anywhere.x.cpu(), anywhere.y.cpu()};
  }();
  const auto net = std::make_shared<Net>();
  DeviceReplicas<Net> replicas(*net, {c10::kCPU, c10::kCPU},
                               [] { return std::make_shared<Net>(); });
  const auto loss_at = [&](double value) {
    torch::NoGradGuard no_grad;
    net->second->weight[0].fill_(value);
    return replicas.loss(8, parts_of(data)).item<double>();
  };
  const double before = loss_at(0.25);
  {
    torch::NoGradGuard no_grad;
    net->second->weight.set_data(net->second->weight.clone());
  }
  CHECK(loss_at(0.5) != before);
  CHECK(loss_at(0.25) == before);
}

TEST_CASE("each device works on a thread of its own, and no more devices than needed") {
  const Data data = data_of(5);
  const auto net = net_of(5);
  auto replicas = replicas_of(*net, 4);
  for (int step = 0; step < 3; ++step) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::set<Net*> nets;
    std::vector<std::uint64_t> sizes;
    replicas.loss(5, [&](Net& one, c10::Device, const ItemRange& part) {
      const std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      nets.insert(&one);
      sizes.push_back(part.count);
      return loss_of(one, data, static_cast<std::int64_t>(part.from),
                     static_cast<std::int64_t>(part.count));
    });
    CHECK(threads.size() == 3);
    CHECK(threads.contains(std::this_thread::get_id()));
    CHECK(nets.size() == 3);
    CHECK(nets.contains(net.get()));
    std::sort(sizes.begin(), sizes.end());
    CHECK(sizes == std::vector<std::uint64_t>{1, 2, 2});
  }
}

TEST_CASE("with BatchNorm no device has one sample, and the statistics are those of the first") {
  const Data data = data_of(9);
  const auto net = net_of(5, /*norm=*/true);
  const auto one = net_of(5, /*norm=*/true);
  auto replicas = replicas_of(*net, 8, /*norm=*/true);
  // 9 samples for 8 devices: 4 of them, with 3, 2, 2 and 2.
  replicas.loss(9, parts_of(data)).backward();
  loss_of(*one, data, 0, 3);
  CHECK(torch::equal(net->normed->running_mean, one->normed->running_mean));
  CHECK(torch::equal(net->normed->running_var, one->normed->running_var));
  CHECK(net->normed->num_batches_tracked.item<std::int64_t>() == 1);
  net->eval();
  replicas.loss(9, parts_of(data));
  CHECK(torch::equal(net->normed->running_mean, one->normed->running_mean));
}

TEST_CASE("a run with dropout can be repeated, and making replicas draws nothing") {
  std::vector<Tensor> results;
  for (int run = 0; run < 3; ++run) {
    const Data data = data_of(64);
    const auto net = net_of(5, false, 0.5);
    torch::manual_seed(11);
    const Tensor expected_draw = torch::rand({4});
    torch::manual_seed(11);
    auto replicas = replicas_of(*net, 4, false, 0.5);
    CHECK(torch::equal(torch::rand({4}), expected_draw));
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 50; ++step) {
      optimizer.zero_grad();
      replicas.loss(64, parts_of(data)).backward();
      optimizer.step();
    }
    results.push_back(net->second->weight.detach().clone());
  }
  CHECK(torch::equal(results[0], results[1]));
  CHECK(torch::equal(results[0], results[2]));
}

TEST_CASE("what fails on a device is thrown to the caller, and the next step goes well") {
  const Data data = data_of(8);
  const auto net = net_of(5);
  auto replicas = replicas_of(*net, 4);
  const auto failing = [](Net&, c10::Device, const ItemRange& part) -> Tensor {
    if (part.from == 4) throw std::runtime_error("device 2 has burnt");
    return torch::ones({1}).requires_grad_(true).sum();
  };
  for (int step = 0; step < 2; ++step) {
    CHECK_THROWS_WITH(replicas.loss(8, failing), "device 2 has burnt");
    CHECK_NOTHROW(replicas.loss(8, parts_of(data)).backward());
  }
}

TEST_CASE("a second backward pass, an empty batch and a replica of another shape are errors") {
  const Data data = data_of(8);
  const auto net = net_of(5);
  auto replicas = replicas_of(*net, 2);
  const Tensor loss = replicas.loss(8, parts_of(data));
  loss.backward();
  CHECK_THROWS(loss.backward());
  CHECK_THROWS_AS(replicas.loss(0, parts_of(data)), std::invalid_argument);
  CHECK_THROWS_AS(DeviceReplicas<Net>(*net, {test_device(), test_device()},
                                      [] { return std::make_shared<Net>(true); }),
                  std::invalid_argument);
  const torch::NoGradGuard no_grad;
  CHECK_FALSE(replicas.loss(8, parts_of(data)).requires_grad());
}
