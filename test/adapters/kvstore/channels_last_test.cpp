#include <torch/nn/modules/conv.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <array>
#include <memory>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"

namespace dpwa {

using namespace test;

namespace {

using Format = torch::MemoryFormat;

constexpr auto plain = Format::Contiguous;
constexpr auto last = Format::ChannelsLast;

std::shared_ptr<torch::nn::Conv2dImpl> convolution(Format format) {
  torch::manual_seed(5);
  torch::nn::Conv2d conv(3, 8, 3);
  conv->to(training_device());
  conv->weight.set_data(conv->weight.detach().contiguous(format));
  return conv.ptr();
}

// The weights of all workers, after five steps of worker i in the i-th order, each on an image of
// its own.
template <std::size_t workers>
std::array<Tensor, workers> train(const BackEnd& back_end,
                                  const std::array<Format, workers>& formats) {
  torch::manual_seed(6);
  const Tensor images = torch::randn({workers, 3, 8, 8}).to(training_device());
  std::vector<std::shared_ptr<torch::nn::Conv2dImpl>> models;
  for (const Format format : formats) models.push_back(convolution(format));
  std::array<Tensor, workers> weights;
  run_nodes(back_end, [&](Participant& node) {
    const Format format = formats[node.index];
    const auto& model = models[node.index];
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    const auto adapter = make_adapter(node.config, *model);
    adapter->start();
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const auto row = static_cast<std::int64_t>(node.index);
      const Tensor loss =
          model->forward(images.narrow(0, row, 1).contiguous(format)).square().mean();
      loss.backward();
      adapter->step(optimizer, loss);
      CHECK(model->weight.is_contiguous(format));
    }
    REQUIRE(adapter->take_optimizer_state(optimizer));
    const auto& state = optimizer.state().at(model->weight.unsafeGetTensorImpl());
    const auto& momentum =
        static_cast<const torch::optim::SGDParamState&>(*state).momentum_buffer();
    CHECK(momentum.is_contiguous(format));
    adapter->finish();
    weights[node.index] = model->weight.detach().cpu().contiguous();
  });
  return weights;
}

}  // namespace

TEST_CASE("kvstore: workers keep channels_last weights, also beside others, and train as others") {
  for (const KvstoreUpdate place : {KvstoreUpdate::server, KvstoreUpdate::worker}) {
    const BackEnd sync = store(2, 1, [&](Config& config) { config.kvstore.update = place; });
    const auto mixed = train<2>(sync, {last, plain});
    const auto same = train<2>(sync, {plain, plain});
    CAPTURE(place == KvstoreUpdate::server);
    CHECK(torch::equal(mixed[0], mixed[1]));
    CHECK(torch::allclose(mixed[0], same[0], 1e-4, 1e-6));
  }
}

TEST_CASE("kvstore: a store in the process keeps channels_last weights") {
  for (const KvstoreType type :
       {KvstoreType::local_update_cpu, KvstoreType::local_allreduce_device}) {
    const BackEnd local = store(1, 0, [&](Config& config) { config.kvstore.type = type; });
    const Tensor kept = train<1>(local, {last})[0];
    CHECK(torch::allclose(kept, train<1>(local, {plain})[0], 1e-4, 1e-6));
  }
}

}  // namespace dpwa
