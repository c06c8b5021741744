#pragma once

#include "interpolation/registry.h"

namespace dpwa {

// clock: f = peer_clock / (clock + peer_clock), so the node that has trained less moves more.
// No parameters.
InterpolationMethod clock_method();

}  // namespace dpwa
