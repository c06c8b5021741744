#pragma once

#include "interpolation/registry.h"

dpwa::InterpolationMethod capped_clock_method();
