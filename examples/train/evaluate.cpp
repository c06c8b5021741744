#include "examples/train/evaluate.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "examples/train/batch.h"

namespace dpwa::train {
namespace {

constexpr std::size_t batch_size = 1000;

class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    module_.eval();
  }
  ~EvaluationMode() { module_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

}  // namespace

std::optional<Evaluation> evaluate(Classifier& model, const Dataset& data, c10::Device device,
                                   const std::function<bool()>& give_up) {
  const c10::InferenceMode inference;
  const EvaluationMode evaluation(model);
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  double loss_sum = 0;
  std::int64_t correct = 0;
  for (std::size_t from = 0; from < samples.size(); from += batch_size) {
    const std::size_t count = std::min(batch_size, samples.size() - from);
    const Batch batch = make_batch(data, {samples.data() + from, count}, device);
    const at::Tensor scores = model.forward(batch.images);
    loss_sum += at::cross_entropy_loss(scores, batch.labels, {}, at::Reduction::Sum).item<double>();
    correct += scores.argmax(1).eq(batch.labels).sum().item<std::int64_t>();
    if (give_up()) return std::nullopt;
  }
  const auto size = static_cast<double>(data.size());
  return Evaluation{static_cast<double>(correct) / size, loss_sum / size};
}

}  // namespace dpwa::train
