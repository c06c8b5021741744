#include "dpwa/kvworker/worker_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dpwa/base/checksum.h"

namespace dpwa::kvstore {

Lent zeros(std::uint64_t bytes) {
  const auto memory = std::make_shared<const std::vector<std::byte>>(bytes);
  return {*memory, memory};
}

bool copy_slices(const Slices& slices, std::span<std::byte> to) {
  if (std::ranges::find(slices, nullptr) != slices.end()) return false;
  for (const SharedBytes& slice : slices) {
    if (slice->size() > to.size()) return false;
    if (!slice->empty()) std::memcpy(to.data(), slice->data(), slice->size());
    to = to.subspan(slice->size());
  }
  return to.empty();
}

bool equal(const Slices& slices, std::span<const std::byte> bytes) {
  for (const SharedBytes& slice : slices) {
    if (!slice || slice->size() > bytes.size()) return false;
    if (!std::ranges::equal(*slice, bytes.first(slice->size()))) return false;
    bytes = bytes.subspan(slice->size());
  }
  return bytes.empty();
}

void WorkerModel::add_parameter(std::string name, ValueSpec spec, bool trained) {
  if (trained) trained_.push_back(values_.size());
  values_.push_back({std::move(name), std::move(spec)});
  ++parameters_;
}

void WorkerModel::add_buffers(ValueSpec spec) {
  std::string name = "(buffers " + std::string(name_of(spec.dtype)) + ")";
  values_.push_back({std::move(name), std::move(spec), true});
}

std::uint32_t checksum_of(WorkerModel& model) {
  Crc32c sum;
  for (const std::size_t each : model.trained()) {
    sum.update(model.value(each).bytes);
  }
  return sum.value();
}

}  // namespace dpwa::kvstore
