#pragma once

#include <cstdint>

#include "adapters/adapter.h"

namespace dpwa::bench {

// Snapshots that an adapter of backend gossip has published so far; 0 for other back ends.
std::uint64_t published_versions(Adapter& adapter);

}  // namespace dpwa::bench
