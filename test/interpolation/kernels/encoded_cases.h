#pragma once

#include <doctest/doctest.h>

#include "test/interpolation/kernels/encoded_reference.h"

// What the tests of the encoded passes run over.

namespace dpwa::test {

inline constexpr std::size_t kEncodedSizes[] = {0,  1,  2,  15, 16,  17,   31,
                                                32, 33, 63, 65, 100, 1000, 4099};

// Runs `check(passes, encoding)` over every variant and encoding.
template <class Check>
void for_each_encoding(Check check) {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const Encoding encoding : kEncodings) {
      CAPTURE(variant.name);
      CAPTURE(name_of(encoding.dtype));
      CAPTURE(name_of(encoding.codec));
      check(passes_of(variant, encoding), encoding);
    }
  }
}

Bytes encoded_by(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& values);

// The value in the dtype; of 16-bit types, one like it.
void append_value(Bytes& bytes, DType dtype, double value);

// Zeros, infinities, NaN, subnormals, ties, extremes: each stands in a block of its own, among
// zeros that its unit must not depend on, and then all of those that are finite follow each other.
Bytes special_values(DType dtype);

struct Landed {
  Bytes bytes;
  kernels::RawStats stats;
};

Landed land(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& encoded,
            const Bytes& own, bool difference);

}  // namespace dpwa::test
