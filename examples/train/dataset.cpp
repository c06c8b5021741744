#include "examples/train/dataset.h"

namespace dpwa::train {

void fill_batch(const Dataset& data, std::span<const std::uint32_t> samples,
                std::span<float> pixels, std::span<std::int64_t> labels) {
  const std::size_t plane = data.height * data.width;
  float* to = pixels.data();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    labels[i] = data.labels[samples[i]];
    const std::uint8_t* from = data.pixels.data() + samples[i] * data.image_size();
    for (std::size_t c = 0; c < data.channels; ++c, from += plane, to += plane) {
      const float scale = 1.0F / (255.0F * data.deviation[c]);
      const float shift = -data.mean[c] / data.deviation[c];
      for (std::size_t p = 0; p < plane; ++p) to[p] = static_cast<float>(from[p]) * scale + shift;
    }
  }
}

}  // namespace dpwa::train
