#pragma once

#include <map>
#include <string>
#include <tuple>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvworker/error.h"

namespace dpwa::python {

// The kind of an optimizer, and its numbers by the names of OptimizerOptions.
using OptimizerWords = std::tuple<std::string, std::map<std::string, double>>;

// Throws UnknownOptimizer that lists the known kinds, and KVStoreError that names the number.
kvstore::OptimizerOptions options_named(const OptimizerWords& words);

}  // namespace dpwa::python
