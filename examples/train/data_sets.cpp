#include "examples/train/data_sets.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <string>

#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/train/files.h"

namespace dpwa::train {
namespace {

constexpr std::size_t preamble_bytes = 4;
constexpr std::size_t max_elements = std::size_t{1} << 32;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw ConfigError(name + ": not a usable IDX file: " + why);
}

// `stem` or `stem`.gz in `dir` or in `dir`/`folder`.
std::filesystem::path find_data_file(const std::filesystem::path& dir, const std::string& folder,
                                     const std::string& stem) {
  for (const auto& place : {dir, dir / folder})
    for (const char* ending : {"", ".gz"}) {
      const std::filesystem::path candidate = place / (stem + ending);
      std::error_code error;
      if (std::filesystem::is_regular_file(candidate, error)) return candidate;
    }
  throw ConfigError("--data-dir: neither " + stem + " nor " + stem + ".gz is in '" + dir.string() +
                    "' or in its folder " + folder);
}

Dataset empty_set(std::size_t channels, std::size_t side, std::array<float, 4> mean,
                  std::array<float, 4> deviation) {
  Dataset data;
  data.channels = channels;
  data.height = data.width = side;
  data.mean = mean;
  data.deviation = deviation;
  return data;
}

constexpr std::size_t classes = 10;

void check_label(std::uint8_t label, const std::filesystem::path& file) {
  if (label >= classes)
    throw ConfigError(file.string() + ": label " + std::to_string(label) + "; accepted: 0 to 9");
}

constexpr int side = 28;  // of the images of MNIST, and of those that are made up
constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

Dataset load_part(const std::filesystem::path& dir, const std::string& part) {
  const auto image_file = find_data_file(dir, "mnist", part + "-images-idx3-ubyte");
  const auto label_file = find_data_file(dir, "mnist", part + "-labels-idx1-ubyte");
  IdxTensor images = parse_idx(read_file(image_file, max_file_bytes), image_file.string());
  IdxTensor labels = parse_idx(read_file(label_file, max_file_bytes), label_file.string());
  const auto& shape = images.dimensions;
  if (shape.size() != 3 || shape[1] != side || shape[2] != side)
    throw ConfigError(image_file.string() + ": does not hold images of 28 x 28 pixels");
  if (labels.dimensions.size() != 1)
    throw ConfigError(label_file.string() + ": does not hold one label per sample");
  if (shape[0] != labels.dimensions[0])
    throw ConfigError(label_file.string() + ": " + std::to_string(labels.dimensions[0]) +
                      " labels for " + std::to_string(shape[0]) + " images");
  for (const std::uint8_t label : labels.elements) check_label(label, label_file);
  Dataset data = empty_set(1, side, {0.1307F}, {0.3081F});
  data.pixels = std::move(images.elements);
  data.labels = std::move(labels.elements);
  return data;
}

constexpr std::size_t image_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + image_bytes;
constexpr std::size_t max_records = 10000;  // per file

void append(Dataset& data, const std::filesystem::path& dir, const std::string& stem) {
  const auto file = find_data_file(dir, "cifar-10-batches-bin", stem);
  const auto bytes = read_file(file, max_records * record_bytes);
  if (bytes.empty() || bytes.size() % record_bytes != 0)
    throw ConfigError(file.string() + ": " + std::to_string(bytes.size()) +
                      " bytes; accepted: 1 to 10000 records of 3073 bytes");
  for (auto record = bytes.begin(); record != bytes.end(); record += record_bytes) {
    check_label(*record, file);
    data.labels.push_back(*record);
    data.pixels.insert(data.pixels.end(), record + 1, record + record_bytes);
  }
}

constexpr int max_shift = 3;
using Pattern = std::vector<float>;  // side x side, in [0, 1]

Pattern make_pattern(Random& random) {
  Pattern pattern(side * side, 0.0F);
  for (int blob = 0; blob < 5; ++blob) {
    const double x = random.uniform(6, side - 6);
    const double y = random.uniform(6, side - 6);
    const double radius = random.uniform(1.5, 3.5);
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        const double square = (row - y) * (row - y) + (column - x) * (column - x);
        pattern[static_cast<std::size_t>(row * side + column)] +=
            static_cast<float>(std::exp(-square / (2 * radius * radius)));
      }
  }
  const float top = *std::max_element(pattern.begin(), pattern.end());
  for (float& value : pattern) value /= top;
  return pattern;
}

// A pattern moved by whole pixels; pixels from outside it are dark.
struct Shifted {
  const Pattern& pattern;
  int down, right;

  float at(int row, int column) const {
    row -= down;
    column -= right;
    if (row < 0 || row >= side || column < 0 || column >= side) return 0;
    return pattern[static_cast<std::size_t>(row * side + column)];
  }
};

Shifted shift(const Pattern& pattern, Random& random) {
  const auto draw = [&random] {
    return static_cast<int>(random.below(2 * max_shift + 1)) - max_shift;
  };
  const int down = draw();
  return {pattern, down, draw()};
}

Dataset draw(const std::vector<Pattern>& patterns, std::size_t size, Random& random) {
  Dataset data = empty_set(1, side, {0.27F}, {0.25F});
  data.pixels.reserve(size * side * side);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t label = random.below(classes);
    const Shifted own = shift(patterns[label], random);
    const Shifted other = shift(patterns[random.below(classes)], random);
    const double contrast = random.uniform(0.4, 0.8);
    const double ghost = random.uniform(0, 0.3);
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        const double value = contrast * own.at(row, column) + ghost * other.at(row, column) +
                             random.uniform(0, 0.35);
        data.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value * 255, 0.0, 255.0)));
      }
    data.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return data;
}

}  // namespace

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

IdxTensor parse_idx(std::vector<std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < preamble_bytes) refuse(name, "shorter than its header");
  if (bytes[0] != 0 || bytes[1] != 0) refuse(name, "it does not begin with two zero bytes");
  if (bytes[2] != 0x08)
    refuse(name, "element type " + std::to_string(bytes[2]) + "; accepted: 8 (unsigned byte)");
  const std::size_t rank = bytes[3];
  if (rank < 1 || rank > 4) refuse(name, std::to_string(rank) + " dimensions; accepted: 1 to 4");
  const std::size_t header_bytes = preamble_bytes + 4 * rank;
  if (bytes.size() < header_bytes) refuse(name, "shorter than its header");

  IdxTensor tensor;
  std::size_t elements = 1;
  for (std::size_t at = preamble_bytes; at < header_bytes; at += 4) {
    const std::size_t size = boost::endian::load_big_u32(&bytes[at]);
    if (size == 0) refuse(name, "a dimension is 0");
    if (size > max_elements / elements) refuse(name, "its header announces too many elements");
    elements *= size;
    tensor.dimensions.push_back(size);
  }
  const std::size_t held = bytes.size() - header_bytes;
  if (held != elements)
    refuse(name, "its header announces " + std::to_string(elements) + " elements, it holds " +
                     std::to_string(held));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  tensor.elements = std::move(bytes);
  return tensor;
}

TrainTest load_mnist(const std::filesystem::path& dir) {
  return {load_part(dir, "train"), load_part(dir, "t10k")};
}

TrainTest load_cifar10(const std::filesystem::path& dir) {
  const Dataset none = empty_set(3, 32, {0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F});
  TrainTest data{none, none};
  for (int batch = 1; batch <= 5; ++batch)
    append(data.train, dir, "data_batch_" + std::to_string(batch) + ".bin");
  append(data.test, dir, "test_batch.bin");
  return data;
}

TrainTest make_synthetic(std::uint64_t seed) {
  Random random(SeedStreams(seed).common(SeedRole::synthetic));
  std::vector<Pattern> patterns;
  for (std::size_t c = 0; c < classes; ++c) patterns.push_back(make_pattern(random));
  TrainTest data;
  data.train = draw(patterns, 12000, random);
  data.test = draw(patterns, 2000, random);
  return data;
}

TrainTest load_data(DataKind kind, const std::filesystem::path& dir, std::uint64_t seed) {
  switch (kind) {
    case DataKind::mnist:
      return load_mnist(dir);
    case DataKind::cifar10:
      return load_cifar10(dir);
    case DataKind::synthetic:
      break;
  }
  return make_synthetic(seed);
}

}  // namespace dpwa::train
