#pragma once

#include <cstdint>
#include <string>

#include "bench/serve.h"

namespace dpwa::bench {

// Properties of the machine that affect figures: processor, kernel, instruction set, huge pages,
// version of dpwa. Unknown values are empty.
Json machine_settings();

// Memory that programs may still take, in bytes; 0 = not known.
std::uint64_t available_memory();
// Throws std::runtime_error that names both when there is less than `bytes`.
void require_memory(std::uint64_t bytes);

}  // namespace dpwa::bench
