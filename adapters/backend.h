#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "adapters/adapter.h"
#include "dpwa/config/config.h"

namespace dpwa {

// The one function of each back end that the factory calls; defined in backend.cpp of its folder,
// or in absent.cpp where this build leaves the back end out, which throws ConfigError with the
// reason.
std::unique_ptr<Adapter> make_gossip(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_kvstore(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_null(const Config& config, torch::nn::Module& model);

}  // namespace dpwa
