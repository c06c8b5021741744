#include <algorithm>
#include <string>

#include "examples/train/data_sets.h"
#include "examples/train/errors.h"
#include "examples/train/idx.h"
#include "examples/train/read_file.h"

namespace dpwa::train {
namespace {

constexpr std::size_t mnist_side = 28;
constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

Dataset load_part(const std::filesystem::path& dir, const std::string& part) {
  const auto image_file = find_data_file(dir, "mnist", part + "-images-idx3-ubyte");
  const auto label_file = find_data_file(dir, "mnist", part + "-labels-idx1-ubyte");
  IdxTensor images = parse_idx(read_file(image_file, max_file_bytes), image_file.string());
  IdxTensor labels = parse_idx(read_file(label_file, max_file_bytes), label_file.string());
  const auto& shape = images.dimensions;
  if (shape.size() != 3 || shape[1] != mnist_side || shape[2] != mnist_side)
    throw UsageError(image_file.string() + ": does not hold images of 28 x 28 pixels");
  if (labels.dimensions.size() != 1)
    throw UsageError(label_file.string() + ": does not hold one label per sample");
  if (shape[0] != labels.dimensions[0])
    throw UsageError(label_file.string() + ": " + std::to_string(labels.dimensions[0]) +
                     " labels for " + std::to_string(shape[0]) + " images");
  Dataset data;
  data.height = data.width = mnist_side;
  const auto wrong = std::find_if(labels.elements.begin(), labels.elements.end(),
                                  [&](std::uint8_t label) { return label >= data.classes; });
  if (wrong != labels.elements.end())
    throw UsageError(label_file.string() + ": label " + std::to_string(*wrong) +
                     "; accepted: 0 to 9");
  data.pixels = std::move(images.elements);
  data.labels = std::move(labels.elements);
  data.mean = {0.1307F};
  data.deviation = {0.3081F};
  return data;
}

}  // namespace

TrainTest load_mnist(const std::filesystem::path& dir) {
  return {load_part(dir, "train"), load_part(dir, "t10k")};
}

}  // namespace dpwa::train
