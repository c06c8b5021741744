#include "adapters/kvstore/dist_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <string>
#include <utility>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/tensor_keys.h"

namespace dpwa::kvstore {
namespace {

at::Tensor host_tensor(const ValueSpec& spec, std::byte* memory) {
  const std::vector<std::int64_t> sizes(spec.shape.begin(), spec.shape.end());
  const at::TensorOptions options(to_scalar_type(spec.dtype));
  return memory == nullptr ? at::empty(sizes, options) : at::from_blob(memory, sizes, options);
}

// The sum of the pushes of the devices, in the type of the value.
void write_sum(const std::vector<at::Tensor>& tensors, at::Tensor out) {
  const at::NoGradGuard no_grad;
  if (tensors.size() == 1) {
    out.copy_(dense_on(tensors[0], at::kCPU));
    return;
  }
  const at::ScalarType wide = out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor sum = wide == out.scalar_type() ? out : at::empty(out.sizes(), wide);
  sum.copy_(dense_on(tensors[0], at::kCPU));
  for (std::size_t i = 1; i < tensors.size(); ++i) sum.add_(dense_on(tensors[i], at::kCPU));
  if (!sum.is_same(out)) out.copy_(sum);
}

// False: a slice is missing.
bool fill(const std::vector<at::Tensor>& tensors, const Slices& slices) {
  if (tensors.front().numel() == 0) return true;  // its one slice comes without bytes
  const at::NoGradGuard no_grad;
  const at::Tensor& first = tensors.front();
  const bool in_place = first.is_cpu() && first.is_contiguous();
  const at::Tensor host =
      in_place ? first : at::empty(first.sizes(), at::TensorOptions(first.scalar_type()));
  if (!copy_slices(slices, bytes_of(host))) return false;
  for (std::size_t i = in_place ? 1 : 0; i < tensors.size(); ++i) {
    at::Tensor each = tensors[i];
    each.copy_(host);
  }
  return true;
}

std::vector<Pushed> pushed(const KeySpecs& specs, const std::vector<KeyedTensors>& values) {
  check(specs, values, "push");
  std::vector<Pushed> all;
  for (auto& [key, tensors] : with_keys_once(values)) {
    const ValueSpec& spec = specs.all().at(key);
    all.push_back({key, spec, [&spec, own = tensors](std::span<std::byte> to) {
                     write_sum(own, host_tensor(spec, to.data()));
                   }});
  }
  return all;
}

std::vector<Wanted> wanted(const KeySpecs& specs, const std::vector<KeyedTensors>& outs) {
  check_pull(specs, outs);
  std::vector<Wanted> all;
  for (const auto& [key, tensors] : outs)
    all.push_back({key, specs.all().at(key),
                   [own = tensors](const Slices& slices) { return fill(own, slices); }});
  return all;
}

}  // namespace

void DistTensors::init(const std::vector<KeyedTensors>& values) {
  const std::vector<ValueSpec> specs = check_new(store_.specs(), values);
  std::vector<at::Tensor> dense;
  std::vector<First> first;
  for (std::size_t i = 0; i < values.size(); ++i) {
    dense.push_back(dense_on(values[i].tensors[0], at::kCPU));
    first.push_back({values[i].key, specs[i], const_bytes_of(dense.back())});
  }
  store_.init(first);
}

std::unique_ptr<Call> DistTensors::push(const std::vector<KeyedTensors>& values, int priority) {
  return store_.push(pushed(store_.specs(), values), priority);
}

std::unique_ptr<Call> DistTensors::pull(const std::vector<KeyedTensors>& outs, int priority) {
  return store_.pull(wanted(store_.specs(), outs), priority);
}

std::unique_ptr<Call> DistTensors::pushpull(const std::vector<KeyedTensors>& values,
                                            const std::vector<KeyedTensors>& outs, int priority) {
  const auto pulled = wanted(store_.specs(), outs);
  return store_.pushpull(pushed(store_.specs(), values), pulled, priority);
}

at::Tensor DistTensors::row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) {
  check_rows(store_.specs(), key, row_ids);
  const at::Tensor whole = host_tensor(store_.specs().all().at(key), nullptr);
  pull({{key, {whole}}}, priority)->wait();
  return rows_of(whole, row_ids);
}

void DistTensors::set_updater(Updater) {
  throw KVStoreError(
      "type " + std::string(type()) +
      " cannot run an updater of a program: no code is sent to servers. Use set_optimizer, or "
      "pull the sums and update them here (kvstore.type dist_sync)");
}

}  // namespace dpwa::kvstore
