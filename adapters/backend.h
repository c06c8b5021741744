#pragma once

#include <memory>

#include "adapters/adapter.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"

namespace dpwa {

// The factory calls one function of each back end. It is defined beside the class of the adapter,
// whose methods are then called in the order of adapters/common/call_order.h alone. If this build
// leaves the back end out, it comes from absent.cpp.in and throws ConfigError with the reason.
std::unique_ptr<Adapter> make_gossip(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_kvstore(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_null(const Config& config, torch::nn::Module& model);

}  // namespace dpwa
