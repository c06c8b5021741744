#pragma once

#include "interpolation/kernels/codec.h"
#include "test/interpolation/kernels/reference.h"

// The encodings one element at a time in plain double arithmetic, by the words of
// docs/ENCODINGS.md: nothing is shared with the kernels.

namespace dpwa::test {

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

}  // namespace dpwa::test
