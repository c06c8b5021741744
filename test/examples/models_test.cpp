#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "examples/train/data_sets.h"
#include "examples/train/models.h"
#include "test/support/temporary_directory.h"

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
  CHECK(test::has(test::message_of<ConfigError>([] { make_model(ModelKind::cnn, shape(1, 8), 1); }),
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

namespace {

std::vector<at::Tensor> statistics_of(const Classifier& model) {
  std::vector<at::Tensor> statistics;
  for (const auto& item : model.named_buffers()) {
    if (item.key().find("running_") != std::string::npos)
      statistics.push_back(item.value().clone());
  }
  return statistics;
}

}  // namespace

TEST_CASE("an evaluation has the same result, bit for bit, on any number of threads") {
  const TrainTest data = make_synthetic(1);
  for (const ModelKind kind : {ModelKind::mlp, ModelKind::cnn}) {
    const auto model = make_model(kind, data.train, 5);
    Dataset test = data.test;
    test.labels.resize(1050);  // 11 batches, of which the last is smaller
    const auto on = [&](std::size_t threads) {
      std::size_t told = 0;
      const auto result = evaluate(
          *model, test, c10::kCPU, [] { return false; },
          [&](std::size_t done, std::size_t total) {
            CHECK(total == 1050);
            told = done;
          },
          threads);
      CHECK(told == 1050);
      CHECK(model->is_training());
      REQUIRE(result);
      return *result;
    };
    const Evaluation one = on(1);
    CHECK(one.accuracy > 0);
    for (const std::size_t threads : {2, 4, 16}) {
      CHECK(on(threads).accuracy == one.accuracy);
      CHECK(on(threads).loss == one.loss);
    }
    CHECK(on(0).loss == doctest::Approx(one.loss).epsilon(1e-6));
  }
}

TEST_CASE("an evaluation that is given up has no result, on any number of threads") {
  const TrainTest data = make_synthetic(1);
  const auto model = make_model(ModelKind::mlp, data.train, 5);
  for (const std::size_t threads : {0, 1, 3}) {
    int asked = 0;
    CHECK_FALSE(evaluate(
        *model, data.test, c10::kCPU, [&] { return ++asked == 3; }, [](std::size_t, std::size_t) {},
        threads));
    CHECK(asked < 7);
  }
}

TEST_CASE("statistics are measured on the same samples everywhere, by the seed") {
  const TrainTest data = make_synthetic(1);
  const auto measured = [&](std::uint64_t seed) {
    const auto model = make_model(ModelKind::cnn, data.train, 5);
    CHECK(reestimate_batch_norm(*model, data.train, seed, c10::kCPU) == 2);
    return statistics_of(*model);
  };
  const auto first = measured(1), again = measured(1), other = measured(2);
  REQUIRE(first.size() == 4);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(at::equal(first[i], again[i]));
    CHECK_FALSE(at::equal(first[i], other[i]));
  }
}

TEST_CASE("measuring mends a model whose statistics are wrong") {
  const TrainTest data = make_synthetic(1);
  const auto model = make_model(ModelKind::cnn, data.train, 5);
  const auto loss = [&] {
    return evaluate(*model, data.test, c10::kCPU, [] { return false; })->loss;
  };
  reestimate_batch_norm(*model, data.train, 1, c10::kCPU);
  const double right = loss();
  for (auto& item : model->named_buffers()) {
    if (item.key().find("running_var") != std::string::npos) item.value().fill_(1e-4);
  }
  CHECK(loss() > right + 0.1);
  reestimate_batch_norm(*model, data.train, 1, c10::kCPU);
  CHECK(loss() == doctest::Approx(right));
}

TEST_CASE("measuring tells how far it is") {
  const TrainTest data = make_synthetic(1);
  const auto model = make_model(ModelKind::cnn, data.train, 5);
  std::vector<std::size_t> done;
  reestimate_batch_norm(*model, data.train, 1, c10::kCPU, [&](std::size_t now, std::size_t all) {
    CHECK(all == 4096);
    done.push_back(now);
  });
  REQUIRE(done.size() == 17);
  CHECK(done.front() == 0);
  CHECK(done.back() == 4096);
}

TEST_CASE("a model without BatchNorm has nothing to measure") {
  const TrainTest data = make_synthetic(1);
  CHECK(reestimate_batch_norm(*make_model(ModelKind::mlp, data.train, 5), data.train, 1,
                              c10::kCPU) == 0);
}
