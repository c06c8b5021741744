#pragma once

#include <cstdint>
#include <filesystem>

#include "examples/train/choices.h"
#include "examples/train/dataset.h"

namespace dpwa::train {

// Each reads a whole data set. Throws UsageError, one line, when a file is missing or damaged or a
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
