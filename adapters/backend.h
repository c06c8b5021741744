#pragma once

#include <functional>
#include <memory>

#include "adapters/adapter.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"

namespace dpwa {

// The factory calls one function of each back end. It is defined beside the class of the adapter,
// whose methods are then called in the order of with_call_order() alone. If this build
// leaves the back end out, it comes from absent.cpp.in and throws ConfigError with the reason.
std::unique_ptr<Adapter> make_gossip(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_kvstore(const Config& config, torch::nn::Module& model);
std::unique_ptr<Adapter> make_null(const Config& config, torch::nn::Module& model);

// The same adapter, whose methods throw std::logic_error for a call at the wrong time, in the same
// words for every back end: what belongs before start() and comes after it or the other way round,
// a second start(), the halves of a step in another order or around step(), and a second
// average_gradients() in a step. So does a call of a step while `captures` says that the device
// only records what it is given; empty: it never does. After finish() or leave() it passes all on.
std::unique_ptr<Adapter> with_call_order(std::unique_ptr<Adapter> back_end,
                                         std::function<bool()> captures = {});

}  // namespace dpwa
