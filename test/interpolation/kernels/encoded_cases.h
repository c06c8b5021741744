#pragma once

#include <doctest/doctest.h>

#include "interpolation/kernels/codec.h"
#include "test/interpolation/kernels/reference.h"

// What the tests of the encoded passes run over, and what these are compared with.

namespace dpwa::test {

// The encodings one element at a time in plain double arithmetic, by the words of
// docs/ENCODINGS.md: nothing is shared with the kernels.

struct Encoding {
  DType dtype;
  Codec codec;
};
inline constexpr Encoding kEncodings[] = {
    {DType::float32, Codec::fp16}, {DType::float32, Codec::bf16}, {DType::float32, Codec::int8},
    {DType::float64, Codec::fp16}, {DType::float64, Codec::bf16}, {DType::float64, Codec::int8},
    {DType::float16, Codec::int8}, {DType::bfloat16, Codec::int8}};

// An encoded element and what it lies among.
struct Decoded {
  double value;
  double unit;  // of its int8 block, NaN when that is not finite; 0 for the other codecs
};
std::vector<Decoded> decode(Codec codec, const Bytes& encoded, std::size_t count);

// What the encoder must make of these elements of `dtype`, in the bytes of the wire. NaN becomes
// the pattern `nan`, since only its being NaN is promised.
Bytes reference_encode(Encoding encoding, const Bytes& values);
bool same_encoded(Codec codec, const Bytes& a, const Bytes& b);

// An own element, as the receiver rounds it to compare it with a peer's.
double rounded_like(Encoding encoding, double own, double unit);

const kernels::EncodedKernels& passes_of(const kernels::Variant& variant, Encoding encoding);

// The passes over every encoding.

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
