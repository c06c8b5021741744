#include "examples/train/models.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "examples/train/evaluate.h"
#include "test/examples/error_text.h"

using namespace dpwa;
using namespace dpwa::train;

namespace {

Dataset shape(std::size_t channels, std::size_t side) {
  Dataset data;
  data.channels = channels;
  data.height = data.width = side;
  return data;
}

std::int64_t parameter_count(const Classifier& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace

TEST_CASE("the mlp for MNIST has 101,770 parameters, resnet18 for CIFAR-10 11,173,962") {
  CHECK(parameter_count(*make_model(ModelKind::mlp, shape(1, 28), 1)) == 101770);
  CHECK(parameter_count(*make_model(ModelKind::resnet18, shape(3, 32), 1)) == 11173962);
}

TEST_CASE("every model gives ten scores per image, and BatchNorm buffers where it should") {
  for (const auto kind : {ModelKind::mlp, ModelKind::cnn, ModelKind::resnet18}) {
    const auto data = shape(kind == ModelKind::cnn ? 1 : 3, kind == ModelKind::cnn ? 28 : 32);
    const auto model = make_model(kind, data, 1);
    const auto side = static_cast<std::int64_t>(data.height);
    const auto images = at::randn({2, static_cast<std::int64_t>(data.channels), side, side});
    CHECK(model->forward(images).sizes() == at::IntArrayRef{2, 10});
    CHECK(model->buffers().empty() == (kind == ModelKind::mlp));
  }
}

TEST_CASE("the same seed gives the same weights, another seed others") {
  for (const auto kind : {ModelKind::mlp, ModelKind::cnn}) {
    const auto one = make_model(kind, shape(1, 28), 1)->parameters();
    const auto same = make_model(kind, shape(1, 28), 1)->parameters();
    const auto other = make_model(kind, shape(1, 28), 2)->parameters();
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], same[i]));
    CHECK_FALSE(at::equal(one[0], other[0]));
  }
}

TEST_CASE("images too small for the pooling of a model are refused") {
  CHECK(test::has(test::usage_error_of([] { make_model(ModelKind::cnn, shape(1, 8), 1); }),
                  "--model: 'cnn' needs images of 16 x 16"));
}

TEST_CASE("an evaluation counts every sample once, in evaluation mode, and puts the mode back") {
  // Scores that say: the class is the value of the first pixel.
  struct FirstPixel final : Classifier {
    torch::Tensor forward(torch::Tensor images) override {
      CHECK_FALSE(is_training());
      auto scores = at::zeros({images.size(0), 10});
      const auto first = (images.flatten(1).select(1, 0) * 255).round().to(at::kLong);
      return scores.scatter_(1, first.unsqueeze(1), 100.0);
    }
  } model;
  Dataset data = shape(1, 1);
  const std::size_t size = 2345;  // not a multiple of the batch
  for (std::size_t i = 0; i < size; ++i) {
    data.pixels.push_back(static_cast<std::uint8_t>(i % 10));
    data.labels.push_back(static_cast<std::uint8_t>(i < 345 ? (i + 1) % 10 : i % 10));
  }
  model.train();
  const auto result = evaluate(model, data, c10::kCPU);
  REQUIRE(result);
  CHECK(result->accuracy == doctest::Approx(2000.0 / 2345));
  CHECK(result->loss == doctest::Approx(100.0 * 345 / 2345).epsilon(1e-4));
  CHECK(model.is_training());
  CHECK_FALSE(evaluate(model, data, c10::kCPU, [] { return true; }).has_value());

  // It tells how far it is from the beginning on, after every hundred samples.
  std::vector<std::size_t> done;
  evaluate(
      model, data, c10::kCPU, [] { return false; },
      [&](std::size_t now, std::size_t all) {
        CHECK(all == size);
        done.push_back(now);
      });
  REQUIRE(done.size() == 25);
  CHECK(done[0] == 0);
  CHECK(done[1] == 100);
  CHECK(done[24] == size);
}
