#pragma once

// How the elements of each dtype become vectors of the type they are computed in. Only for the
// variant sources, after a definition of load_half and store_half.

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

// A block is the unit of every pass: 128 bytes of the computing type. It is worked on in packs of
// two vectors, `low` from one half of the block's elements and `high` from the other. Which lane of
// a sum an element falls into, and with it the result, is thereby the same for every vector width.
inline constexpr std::size_t kBlockBytes = 128;
inline constexpr std::size_t kPacks = kBlockBytes / 2 / DPWA_VECTOR_BYTES;

template <class Element>
inline constexpr std::size_t kBlock = kBlockBytes / sizeof(typename Element::Scalar);  // elements
template <class Element>
inline constexpr std::size_t kStride = kBlock<Element> * Element::kSize;  // bytes of it in memory

template <class Scalar>
struct PackOf {
  typedef Scalar Vector __attribute__((vector_size(DPWA_VECTOR_BYTES)));
  Vector low;
  Vector high;
};

// An element type states
//   Scalar, Vector, Pack   what it is computed in;
//   kSize                  bytes of an element in memory;
//   kExact                 whether an element in memory holds every value of Scalar;
//   load(block, i)         pack i of a block;
//   store(block, i, pack)  the reverse; returns what a load would now give.

// fp32 and fp64. Low and high are the first and second half of a block.
template <class ScalarType>
struct Native {
  using Scalar = ScalarType;
  using Pack = PackOf<Scalar>;
  using Vector = typename Pack::Vector;
  static constexpr std::size_t kSize = sizeof(Scalar);
  static constexpr bool kExact = true;

  static Pack load(const std::byte* block, std::size_t i) {
    const std::byte* from = block + i * DPWA_VECTOR_BYTES;
    return {load_bytes<Vector>(from), load_bytes<Vector>(from + kBlockBytes / 2)};
  }
  static Pack store(std::byte* block, std::size_t i, Pack pack) {
    std::byte* to = block + i * DPWA_VECTOR_BYTES;
    store_bytes(to, pack.low);
    store_bytes(to + kBlockBytes / 2, pack.high);
    return pack;
  }
};

// Computed in fp32. Low and high are the first and second half of a block.
struct Float16 {
  using Scalar = float;
  using Pack = PackOf<Scalar>;
  using Vector = Pack::Vector;
  static constexpr std::size_t kSize = 2;
  static constexpr bool kExact = false;

  static Pack load(const std::byte* block, std::size_t i) {
    const std::byte* from = block + i * DPWA_VECTOR_BYTES / 2;
    return {load_half(from), load_half(from + kBlockBytes / 4)};
  }
  static Pack store(std::byte* block, std::size_t i, Pack pack) {
    std::byte* to = block + i * DPWA_VECTOR_BYTES / 2;
    store_half(to, pack.low);
    store_half(to + kBlockBytes / 4, pack.high);
    return load(block, i);
  }
};

// Computed in fp32. Low and high are the elements of even and odd index, the two halves of each
// little-endian word: no lane has to cross another.
struct BFloat16 {
  using Scalar = float;
  using Pack = PackOf<Scalar>;
  using Vector = Pack::Vector;
  static constexpr std::size_t kSize = 2;
  static constexpr bool kExact = false;

  static Pack load(const std::byte* block, std::size_t i) {
    const Words words = load_bytes<Words>(block + i * DPWA_VECTOR_BYTES);
    return {(Floats)(words << 16), (Floats)(words & 0xffff0000u)};
  }
  static Pack store(std::byte* block, std::size_t i, Pack pack) {
    const Words low = round(pack.low);
    const Words high = round(pack.high);
    store_bytes(block + i * DPWA_VECTOR_BYTES, (low >> 16) | high);
    return {(Floats)low, (Floats)high};
  }

 private:
  // To nearest even, as fp32 bits whose lower half is zero. Needs no case for NaN: one that comes
  // of bf16 values and finite factors has a zero lower half already, so that nothing carries.
  static Words round(Floats value) {
    const Words bits = (Words)value;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  }
};

using Float32 = Native<float>;
using Float64 = Native<double>;

}  // namespace
}  // namespace dpwa::kernels
