#pragma once

#include <cstddef>

#include "dpwa/config/config.h"
#include "dpwa/kvstore/shared_settings.h"

namespace dpwa {

// The settings of section kvstore that all workers and servers of a run need alike.
kvstore::SharedSettings shared_store_settings(const Config& config);
// The number of workers that the first step waits for.
std::size_t first_workers(const Config& config);

}  // namespace dpwa
