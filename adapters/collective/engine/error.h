#pragma once

#include <exception>
#include <string>

#include "dpwa/collective/error.h"

namespace dpwa::collective {

// An exception of an engine as a CollectiveError, without the engine's source paths, advice and
// call stacks. A CollectiveError is returned unchanged.
CollectiveError translate(const std::exception_ptr& thrown, const std::string& operation,
                          const std::string& engine);

// The plain part of an engine's message.
std::string plain_reason(const std::string& message);

}  // namespace dpwa::collective
