#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "adapters/adapter_types.h"

namespace dpwa {

// The rows (axis 0) of `data` that belong to worker place.rank of place.size: contiguous, a view.
// Sizes differ by at most one; the first N mod K workers have one more. Every worker calls it with
// the whole data set. When the number of workers changes, it is called again with the new place.
//
// Throws std::invalid_argument, with one line that names tensor, rows and workers, when a worker
// would get no row, when a tensor has no axis 0, or when it holds a value that is not finite.
at::Tensor split_data(const at::Tensor& data, const Place& place);

// The same rows of each tensor. Throws as well when the numbers of rows differ.
std::vector<at::Tensor> split_data(const std::vector<at::Tensor>& data, const Place& place);

// "float32[235, 1]"; "nothing" for an undefined tensor.
std::string words_of_shape(const at::Tensor& tensor);
// Types and shapes in one line, "float32[235, 1], float32[235]".
std::string words_of_shapes(const std::vector<at::Tensor>& data);

// The same with a checksum over all values, for Adapter::mark_model("data", words_of_data(data)):
// under every back end, workers with other data are then refused. Reads all of it, once.
std::string words_of_data(const std::vector<at::Tensor>& data);

}  // namespace dpwa
