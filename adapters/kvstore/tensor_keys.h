#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "adapters/kvstore/store.h"
#include "dpwa/kvworker/key_specs.h"

namespace dpwa::kvstore {

// The checks of a store for calls with tensors (KeySpecs), which throw KVStoreError for tensors
// that no store holds, too.

// The types and shapes of values that may be initialised together, in their order.
std::vector<ValueSpec> check_new(const KeySpecs& specs, const std::vector<KeyedTensors>& values);
void check(const KeySpecs& specs, const std::vector<KeyedTensors>& values,
           std::string_view operation);
// Tensors that can be filled.
void check_pull(const KeySpecs& specs, const std::vector<KeyedTensors>& outs);
// Rows of a value: integers of one dimension, in its range.
void check_rows(const KeySpecs& specs, const Key& key, const at::Tensor& row_ids);

// Every key once, in the order of the call, with the values of a repeated one together.
std::vector<KeyedTensors> with_keys_once(const std::vector<KeyedTensors>& values);

// The rows of a value, after check_rows(): each once and in order.
at::Tensor rows_of(const at::Tensor& value, const at::Tensor& row_ids);

}  // namespace dpwa::kvstore
