#include "examples/train/evaluate.h"

#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "adapters/common/batch_norm.h"
#include "adapters/parallel/parallel_inference.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/train/batch.h"

namespace dpwa::train {
namespace {

// Small enough that resnet18 on one core reports its progress, and gives up, within seconds.
constexpr std::size_t batch_size = 100;

struct PartResult {
  double loss_sum = 0;
  std::int64_t correct = 0;
};

constexpr std::size_t most_samples = 4096;
constexpr std::size_t samples_per_batch = 256;

}  // namespace

std::optional<Evaluation> evaluate(Classifier& model, const Dataset& data, c10::Device device,
                                   const std::function<bool()>& give_up,
                                   const SampleProgress& progress, std::size_t threads) {
  std::vector<std::uint32_t> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0U);
  std::vector<PartResult> parts((samples.size() + batch_size - 1) / batch_size);
  progress(0, samples.size());
  const auto work = [&](std::size_t part) {
    const std::size_t from = part * batch_size;
    const std::size_t count = std::min(batch_size, samples.size() - from);
    const Batch batch = make_batch(data, {samples.data() + from, count}, device);
    const at::Tensor scores = model.forward(batch.images);
    const auto loss = at::cross_entropy_loss(scores, batch.labels, {}, at::Reduction::Sum);
    parts[part] = {loss.item<double>(),
                   scores.argmax(1).eq(batch.labels).sum().item<std::int64_t>()};
  };
  InferenceOptions options;
  options.threads = threads;
  options.go_on = [&](std::size_t done) {
    progress(std::min(done * batch_size, samples.size()), samples.size());
    return !give_up();
  };
  if (!infer_parts(model, parts.size(), work, options)) return std::nullopt;
  PartResult all;
  for (const PartResult& part : parts) {
    all.loss_sum += part.loss_sum;
    all.correct += part.correct;
  }
  const auto size = static_cast<double>(data.size());
  return Evaluation{static_cast<double>(all.correct) / size, all.loss_sum / size};
}

std::size_t reestimate_batch_norm(Classifier& model, const Dataset& train, std::uint64_t seed,
                                  c10::Device device, const SampleProgress& progress) {
  std::vector<std::uint32_t> samples(train.size());
  std::iota(samples.begin(), samples.end(), 0U);
  Random random(SeedStreams(seed).common(SeedRole::statistics));
  shuffle(samples, random);
  samples.resize(std::min(samples.size(), most_samples));
  // Every batch has the same weight, so all have one size: a smaller last batch is left out.
  const std::size_t size = std::min(samples.size(), samples_per_batch);
  return dpwa::reestimate_batch_norm(model, [&] {
    progress(0, samples.size());
    for (std::size_t from = 0; from + size <= samples.size(); from += size) {
      model.forward(make_batch(train, {samples.data() + from, size}, device).images);
      progress(from + size, samples.size());
    }
  });
}

}  // namespace dpwa::train
