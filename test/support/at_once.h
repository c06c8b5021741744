#pragma once

#include <cstddef>
#include <functional>

namespace dpwa::test {

// Runs body(0) to body(count - 1) at once, each on a thread of its own, as processes would.
// Rethrows the first failure once all are done.
void at_once(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace dpwa::test
