#include "examples/train/data_sets.h"

namespace dpwa::train {

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
