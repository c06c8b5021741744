#pragma once

#include <memory>

#include "adapters/adapter.h"

namespace dpwa {

// The same adapter, whose methods throw std::logic_error for a call at the wrong time, in the same
// words for every back end: what belongs before start() and comes after it or the other way round,
// a second start(), the halves of a step in another order or around step(), and a second
// average_gradients() in a step. After finish() or leave() it passes all on.
std::unique_ptr<Adapter> with_call_order(std::unique_ptr<Adapter> back_end);

}  // namespace dpwa
