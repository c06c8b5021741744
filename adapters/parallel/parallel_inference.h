#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>

#include "adapters/torch_types.h"

namespace dpwa {

struct InferenceOptions {
  // Threads that work at once, each of which computes alone, so that the results are the same bit
  // for bit whatever their number. 0: the calling thread, with all its compute threads.
  std::size_t threads = 1;
  // Told after each part, by one thread at a time: how many are done. False: no more are begun.
  std::function<bool(std::size_t done)> go_on = [](std::size_t) { return true; };
};

// Runs work(part) for every part from 0 to parts - 1, on several threads at once, each in inference
// mode (a setting per thread). The module is in evaluation mode and shared by all threads, so
// `work` must not change it, and must store the results of each part separately. Afterwards the
// module's mode is restored. Returns false when go_on ended it. Rethrows the first failure once all
// threads have ended.
bool infer_parts(torch::nn::Module& module, std::size_t parts,
                 const std::function<void(std::size_t part)>& work,
                 const InferenceOptions& options = {});

// The outputs of `forward` for all rows of `inputs`, in their order, taken in batches of
// `batch_size`, of which the last may be smaller. Undefined when go_on ended it.
at::Tensor infer_rows(torch::nn::Module& module, const at::Tensor& inputs, std::int64_t batch_size,
                      const std::function<at::Tensor(const at::Tensor& batch)>& forward,
                      const InferenceOptions& options = {});

}  // namespace dpwa
