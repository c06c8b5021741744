#include "examples/train/evaluate.h"

#include <doctest/doctest.h>

#include "examples/train/data_sets.h"

using namespace dpwa::train;

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
