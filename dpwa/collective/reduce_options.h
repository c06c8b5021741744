#pragma once

#include <string>

#include "dpwa/rules/options.h"

namespace dpwa::collective {

enum class Reduction { average, sum, min, max };

// The compression of any floating-point tensor. fp16 travels with a common power of two, so that no
// finite value overflows (sum_in_halves.h).
using Compression = GradientCompression;

struct ReduceOptions {
  Reduction reduction = Reduction::average;
  double prescale = 1;   // multiplies every member's tensor before the reduction
  double postscale = 1;  // multiplies the result
  Compression compression = Compression::none;
  // Whether the members first compare the operation, which costs one small exchange. Without it,
  // members that differ get an error of the engine or wrong sums, or wait for the timeout. The same
  // on all members.
  bool check = true;
};

const char* name_of(Reduction reduction);

// The text of the options that members compare: "average prescale 1 postscale 0.5 compression
// none". Numbers are exact.
std::string text_of(const ReduceOptions& options);
// Its counterpart. Throws std::invalid_argument.
ReduceOptions reduce_options_of(const std::string& text);

}  // namespace dpwa::collective
