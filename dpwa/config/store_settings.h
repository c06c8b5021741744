#pragma once

#include "dpwa/config/config.h"
#include "dpwa/kvstore/shared_settings.h"

namespace dpwa {

// Those of section kvstore that all workers and servers of a run need alike.
kvstore::SharedSettings shared_store_settings(const Config& config);

}  // namespace dpwa
