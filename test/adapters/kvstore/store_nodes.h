#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "test/adapters/collective/training_nodes.h"
#include "test/adapters/contract.h"

// Workers of the parameter server in one process, with real servers, that train a small net.
namespace dpwa::test {

inline constexpr std::int64_t worker_rows = 8;  // rows of one worker in a step

inline BackEnd store(std::size_t nodes, std::size_t servers,
                     const std::function<void(Config&)>& tune) {
  return {"kvstore", nodes,
          [tune](Config& config) {
            config.backend = Backend::kvstore;
            if (tune) tune(config);
          },
          servers, true};
}

inline std::unique_ptr<torch::optim::Optimizer> make(const MakeOptimizer& kind, Net& net) {
  return kind(net.parameters());
}

// Rows of step `step`, for a global batch of `rows`.
inline std::int64_t row_of(int step, std::int64_t rows, std::int64_t all) {
  return static_cast<std::int64_t>(step) * rows % (all - rows + 1);
}

}  // namespace dpwa::test
