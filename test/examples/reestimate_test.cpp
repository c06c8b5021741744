#include "examples/train/reestimate.h"

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "examples/train/data_sets.h"
#include "examples/train/evaluate.h"

using namespace dpwa;
using namespace dpwa::train;

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
