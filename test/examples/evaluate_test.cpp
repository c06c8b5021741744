#include "examples/train/evaluate.h"

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "examples/train/data_sets.h"

using namespace dpwa::train;
using namespace dpwa;

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
