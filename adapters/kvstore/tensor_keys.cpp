#include "adapters/kvstore/tensor_keys.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>

namespace dpwa::kvstore {

std::vector<ValueSpec> check_new(const KeySpecs& specs, const std::vector<KeyedTensors>& values) {
  KeySpecs::KeyedSpecs added;
  std::vector<ValueSpec> own;
  for (const auto& [key, tensors] : values) {
    const std::string what = specs.call_of("init", key);
    if (tensors.size() != 1) throw KVStoreError(what + ": one tensor is needed");
    own.push_back(spec_of(tensors[0], what));
    added.emplace_back(key, own.back());
  }
  specs.check_new(added);
  return own;
}

void check(const KeySpecs& specs, const std::vector<KeyedTensors>& values,
           std::string_view operation) {
  for (const auto& [key, tensors] : values) {
    const std::string what = specs.call_of(operation, key);
    specs.at(key, what);
    if (tensors.empty()) throw KVStoreError(what + ": no tensor");
    for (const at::Tensor& tensor : tensors) specs.check(key, spec_of(tensor, what), operation);
  }
}

void check_pull(const KeySpecs& specs, const std::vector<KeyedTensors>& outs) {
  check(specs, outs, "pull");
  for (const auto& [key, tensors] : outs) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.layout() != at::kStrided)
        throw KVStoreError(specs.call_of("pull", key) +
                           ": the tensor is sparse; use row_sparse_pull");
    }
  }
}

void check_rows(const KeySpecs& specs, const Key& key, const at::Tensor& row_ids) {
  specs.check_rows(key, 0, -1);
  if (!row_ids.defined() || row_ids.dim() != 1 ||
      (row_ids.scalar_type() != at::kLong && row_ids.scalar_type() != at::kInt))
    throw KVStoreError(specs.call_of("row_sparse_pull", key) +
                       ": the rows are integers of one dimension");
  if (row_ids.numel() == 0) return;
  specs.check_rows(key, row_ids.min().item<std::int64_t>(), row_ids.max().item<std::int64_t>());
}

std::vector<KeyedTensors> with_keys_once(const std::vector<KeyedTensors>& values) {
  std::vector<KeyedTensors> once;
  for (const KeyedTensors& one : values) {
    const auto same = std::ranges::find(once, one.key, &KeyedTensors::key);
    if (same == once.end()) {
      once.push_back(one);
    } else {
      same->tensors.insert(same->tensors.end(), one.tensors.begin(), one.tensors.end());
    }
  }
  return once;
}

at::Tensor rows_of(const at::Tensor& value, const at::Tensor& row_ids) {
  const at::Tensor sorted = std::get<0>(at::unique_dim(row_ids.to(value.device(), at::kLong), 0));
  // The rows are sorted and unique: nothing is left to check or to add up.
  return at::_sparse_coo_tensor_unsafe(sorted.unsqueeze(0), value.index_select(0, sorted),
                                       value.sizes(), value.scalar_type(), at::kSparse,
                                       value.device(), {}, /*is_coalesced=*/true);
}

}  // namespace dpwa::kvstore
