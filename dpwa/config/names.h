#pragma once

#include "dpwa/config/config.h"

namespace dpwa::config {

// As a cluster file writes it.
const char* name_of(Backend backend);
const char* name_of(CollectiveEngine engine);
const char* name_of(GradientCompression compression);
const char* name_of(OnLostRank policy);
const char* name_of(Minority policy);

}  // namespace dpwa::config
