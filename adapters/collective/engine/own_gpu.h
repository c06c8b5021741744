#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dpwa::collective {

// The reason why a group whose members use these GPUs cannot use NCCL: two ranks share one. None:
// each has its own. `gpus`: by rank, a text that is the same in all processes that use a GPU;
// `names`: of the ranks, may be empty. Pure.
std::optional<std::string> shared_gpu(const std::vector<std::string>& gpus,
                                      const std::vector<std::string>& names);

}  // namespace dpwa::collective
