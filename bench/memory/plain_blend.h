#pragma once

#include <cstddef>
#include <span>

namespace dpwa::bench {

// target = own + factor * (peer - own) over float32, as a plain loop that the compiler vectorises.
void plain_blend(std::span<std::byte> target, std::span<const std::byte> own,
                 std::span<const std::byte> peer, float factor);

// difference = peer - own over float32, by AVX2 if available: a landing without statistics.
void plain_difference(std::span<std::byte> difference, std::span<const std::byte> peer,
                      std::span<const std::byte> own);

// x += factor * difference over float32, likewise.
void plain_delta(std::span<std::byte> x, std::span<const std::byte> difference, float factor);

// The same and copy = x, in one pass.
void plain_delta_and_copy(std::span<std::byte> x, std::span<const std::byte> difference,
                          float factor, std::span<std::byte> copy);

}  // namespace dpwa::bench
