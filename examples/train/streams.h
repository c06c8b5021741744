#pragma once

#include <cstdint>

namespace dpwa::train {

// First element of the path given to derive_seed: one independent random stream per purpose.
// Common to all nodes: weights, split, synthetic. Per rank: order, noise.
namespace stream {
inline constexpr std::uint64_t weights = 1;    // initial parameters
inline constexpr std::uint64_t split = 2;      // which sample belongs to which shard
inline constexpr std::uint64_t order = 3;      // order of the samples, {order, rank}
inline constexpr std::uint64_t noise = 4;      // dropout, {noise, rank}
inline constexpr std::uint64_t synthetic = 5;  // the synthetic data set
}  // namespace stream

}  // namespace dpwa::train
