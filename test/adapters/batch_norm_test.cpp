#include "adapters/common/batch_norm.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <stdexcept>
#include <vector>

#include "adapters/common/flat_parameters.h"
#include "test/adapters/doctest_with_torch.h"

namespace dpwa {
namespace {

// Mean and variance over all but the channels, dimension 1, of each batch; then their plain means.
struct ByHand {
  at::Tensor mean, variance;
  explicit ByHand(const std::vector<at::Tensor>& batches) {
    std::vector<at::Tensor> means, variances;
    for (const at::Tensor& batch : batches) {
      const auto values = batch.transpose(0, 1).flatten(1).to(torch::kDouble);
      means.push_back(values.mean(1));
      variances.push_back(values.var(1, /*unbiased=*/true));
    }
    mean = torch::stack(means).mean(0).to(torch::kFloat);
    variance = torch::stack(variances).mean(0).to(torch::kFloat);
  }
};

template <class Layer>
void check_layer(Layer layer, const std::vector<std::int64_t>& shape) {
  torch::manual_seed(5);
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 7; ++i) batches.push_back(torch::randn(shape) * (i + 1) + i);
  layer->running_mean.fill_(100);
  layer->running_var.fill_(100);
  layer->num_batches_tracked.fill_(42);
  const void* memory = layer->running_mean.const_data_ptr();
  const auto momentum = layer->options.momentum();
  CHECK(reestimate_batch_norm(*layer, [&] {
          for (const at::Tensor& batch : batches) layer->forward(batch);
        }) == 1);
  const ByHand expected(batches);
  CHECK(torch::allclose(layer->running_mean, expected.mean, 1e-4, 1e-5));
  CHECK(torch::allclose(layer->running_var, expected.variance, 1e-4, 1e-5));
  CHECK(layer->running_mean.const_data_ptr() == memory);
  CHECK((layer->options.momentum() == momentum));
  CHECK(layer->num_batches_tracked.template item<std::int64_t>() == 42);
}

}  // namespace

TEST_CASE("re-estimated statistics are the means over batches of mean and variance, by hand") {
  using namespace torch::nn;
  check_layer(BatchNorm1d(3), {16, 3});
  check_layer(BatchNorm1d(3), {16, 3, 5});
  check_layer(BatchNorm2d(3), {4, 3, 5, 6});
  check_layer(BatchNorm3d(3), {4, 3, 2, 3, 4});
  check_layer(BatchNorm2d(BatchNormOptions(3).momentum(std::nullopt)), {4, 3, 5, 6});
  check_layer(BatchNorm2d(BatchNormOptions(3).affine(false)), {4, 3, 5, 6});
}

TEST_CASE("re-estimation leaves weights, modes, memory and dropout alone") {
  using namespace torch::nn;
  Sequential model(Linear(4, 8), Dropout(0.5), BatchNorm1d(8), Linear(8, 8), BatchNorm1d(8));
  const FlatParameters flat(*model);
  model->train();
  model->ptr(4)->eval();  // a layer that the user has frozen
  const auto data = torch::randn({64, 4});
  const auto weights = model->parameters();
  std::vector<at::Tensor> before;
  for (const auto& weight : weights) before.push_back(weight.detach().clone());
  CHECK(reestimate_batch_norm(*model, [&] {
          CHECK_FALSE(model->ptr(1)->is_training());
          CHECK_FALSE(torch::GradMode::is_enabled());
          model->forward(data);
        }) == 2);
  for (std::size_t i = 0; i < weights.size(); ++i) CHECK(torch::equal(weights[i], before[i]));
  for (const std::size_t training : {0, 1, 2, 3}) CHECK(model->ptr(training)->is_training());
  CHECK_FALSE(model->ptr(4)->is_training());
  CHECK(model->is_training());
  CHECK_NOTHROW(flat.check());
  const auto seen = model->ptr(0)->as<Linear>()->forward(data).detach();
  CHECK(torch::allclose(model->ptr(2)->as<BatchNorm1d>()->running_mean, seen.mean(0), 1e-4, 1e-5));
}

TEST_CASE("without batches, or when a pass throws, the statistics are those of before") {
  using namespace torch::nn;
  Sequential model(BatchNorm1d(2), BatchNorm1d(BatchNormOptions(2).track_running_stats(false)));
  auto* layer = model->ptr(0)->as<BatchNorm1d>();
  layer->running_mean.fill_(3);
  layer->num_batches_tracked.fill_(9);
  CHECK(reestimate_batch_norm(*model, [] {}) == 0);
  CHECK(layer->running_mean.eq(3).all().item<bool>());
  CHECK_THROWS_AS(reestimate_batch_norm(*model,
                                        [&] {
                                          model->forward(torch::randn({8, 2}));
                                          throw std::runtime_error("no more data");
                                        }),
                  std::runtime_error);
  CHECK(layer->running_mean.eq(3).all().item<bool>());
  CHECK(layer->running_var.eq(1).all().item<bool>());
  CHECK(layer->num_batches_tracked.item<std::int64_t>() == 9);
  CHECK((layer->options.momentum() == 0.1));
  CHECK(layer->is_training());
}

}  // namespace dpwa
