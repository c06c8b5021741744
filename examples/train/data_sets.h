#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "examples/train/options.h"

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

// A tensor of unsigned bytes in IDX form, the format of the MNIST files. Big-endian:
//   0  u8 u8   0, 0
//   2  u8      element type; 0x08 = unsigned byte, the only one accepted
//   3  u8      number of dimensions, 1 to 4
//   4  u32...  size of each dimension
//   then the elements, the last dimension fastest, to the end of the file
struct IdxTensor {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> elements;
};

// `name` is the file in messages. Throws ConfigError when `bytes` is not exactly one such tensor.
IdxTensor parse_idx(std::vector<std::uint8_t> bytes, const std::string& name);

// Each reads a whole data set. Throws ConfigError, one line, when a file is missing or damaged or a
// label is out of range.

// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte,
// plain or .gz, in `dir` or `dir`/mnist. 28 x 28 pixels, any number of samples.
TrainTest load_mnist(const std::filesystem::path& dir);

// The binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin, plain or .gz, in
// `dir` or `dir`/cifar-10-batches-bin. Records of one label byte and 3 x 32 x 32 pixels.
TrainTest load_cifar10(const std::filesystem::path& dir);

// Ten classes of 28 x 28 images, 12,000 to train and 2,000 to test: blobs of a class under shift,
// changes of contrast, a faint second class and noise. The same for the same seed everywhere.
TrainTest make_synthetic(std::uint64_t seed);

TrainTest load_data(DataKind kind, const std::filesystem::path& dir, std::uint64_t seed);

}  // namespace dpwa::train
