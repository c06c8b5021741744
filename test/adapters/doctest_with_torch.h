#pragma once

// For tests that include torch: its logging defines CHECK, which aborts. Doctest's has to come
// last.
#include <c10/util/Logging.h>
#include <doctest/doctest.h>
