#pragma once

#include <cstdlib>

// A property that holds for every input: a fuzzer reports the abort with the input that broke it.
#define DPWA_FUZZ_REQUIRE(property) \
  do {                              \
    if (!(property)) std::abort();  \
  } while (false)
