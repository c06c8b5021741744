#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dpwa::train {

// Labelled images as bytes, whole in memory. Constant once loaded.
struct Dataset {
  std::size_t channels = 1;  // at most 4
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t classes = 10;
  std::vector<std::uint8_t> pixels;  // image after image, each channels x height x width
  std::vector<std::uint8_t> labels;  // below `classes`
  // Of the training pixels scaled to [0, 1], per channel; batches are normalised with them.
  std::array<float, 4> mean{};
  std::array<float, 4> deviation{1, 1, 1, 1};

  std::size_t size() const { return labels.size(); }
  std::size_t image_size() const { return channels * height * width; }
};

struct TrainTest {
  Dataset train;
  Dataset test;
};

// Normalises the chosen images into `pixels` (samples x channels x height x width) and copies their
// labels. The spans are exactly as long as `samples` asks for.
void fill_batch(const Dataset& data, std::span<const std::uint32_t> samples,
                std::span<float> pixels, std::span<std::int64_t> labels);

}  // namespace dpwa::train
