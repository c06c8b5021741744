#include "examples/train/reestimate.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "adapters/common/batch_norm.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shuffle.h"

namespace dpwa::train {
namespace {

constexpr std::size_t most_samples = 4096;
constexpr std::size_t samples_per_batch = 256;

}  // namespace

std::size_t reestimate_batch_norm(Classifier& model, const Dataset& train, std::uint64_t seed,
                                  c10::Device device, const SampleProgress& progress) {
  std::vector<std::uint32_t> samples(train.size());
  std::iota(samples.begin(), samples.end(), 0U);
  Random random(SeedStreams(seed).common(SeedRole::statistics));
  shuffle(samples, random);
  samples.resize(std::min(samples.size(), most_samples));
  // Every batch counts alike, so all are of one size: a smaller last one is left out.
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
