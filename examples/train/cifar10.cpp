#include <string>

#include "examples/train/data_sets.h"
#include "examples/train/errors.h"
#include "examples/train/read_file.h"

namespace dpwa::train {
namespace {

constexpr std::size_t image_bytes = 3 * 32 * 32;
constexpr std::size_t record_bytes = 1 + image_bytes;
constexpr std::size_t max_records = 10000;  // per file

Dataset empty_set() {
  Dataset data;
  data.channels = 3;
  data.height = data.width = 32;
  data.mean = {0.4914F, 0.4822F, 0.4465F};
  data.deviation = {0.2470F, 0.2435F, 0.2616F};
  return data;
}

void append(Dataset& data, const std::filesystem::path& dir, const std::string& stem) {
  const auto file = find_data_file(dir, "cifar-10-batches-bin", stem);
  const auto bytes = read_file(file, max_records * record_bytes);
  if (bytes.empty() || bytes.size() % record_bytes != 0)
    throw UsageError(file.string() + ": " + std::to_string(bytes.size()) +
                     " bytes; accepted: 1 to 10000 records of 3073 bytes");
  for (auto record = bytes.begin(); record != bytes.end(); record += record_bytes) {
    if (*record >= data.classes)
      throw UsageError(file.string() + ": label " + std::to_string(*record) + "; accepted: 0 to 9");
    data.labels.push_back(*record);
    data.pixels.insert(data.pixels.end(), record + 1, record + record_bytes);
  }
}

}  // namespace

TrainTest load_cifar10(const std::filesystem::path& dir) {
  TrainTest data{empty_set(), empty_set()};
  for (int batch = 1; batch <= 5; ++batch)
    append(data.train, dir, "data_batch_" + std::to_string(batch) + ".bin");
  append(data.test, dir, "test_batch.bin");
  return data;
}

}  // namespace dpwa::train
