#pragma once

#include "dpwa/config/config.h"

namespace dpwa::test {

// Checks that two configurations agree in every field but the file they came from and the own name.
void check_same(const Config& a, const Config& b);

}  // namespace dpwa::test
