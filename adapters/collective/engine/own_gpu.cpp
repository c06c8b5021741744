#include "adapters/collective/engine/own_gpu.h"

#include <algorithm>

#include "adapters/collective/engine/signature.h"

namespace dpwa::collective {

std::optional<std::string> shared_gpu(const std::vector<std::string>& gpus,
                                      const std::vector<std::string>& names) {
  for (auto second = gpus.begin(); second != gpus.end(); ++second) {
    const auto first = std::find(gpus.begin(), second, *second);
    if (first == second) continue;
    const auto shown = [&](auto place) {
      return shown_rank(static_cast<std::size_t>(place - gpus.begin()), names);
    };
    return "ranks " + shown(first) + " and " + shown(second) +
           " use the same GPU; accepted: a GPU for each rank, or engine gloo";
  }
  return std::nullopt;
}

}  // namespace dpwa::collective
