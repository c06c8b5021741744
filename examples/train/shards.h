#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/train/options.h"

namespace dpwa::train {

using Shard = std::vector<std::uint32_t>;  // sample numbers, rising

// Which samples each of `nodes` nodes trains on. The same arguments give the same shards
// everywhere, so every node computes them by itself.
//   iid:       a random partition; sizes differ by at most one, the first ones get more.
//   dirichlet: a partition; of each class the nodes take shares drawn from Dirichlet(alpha). A node
//              without any sample gets one of the largest shard.
//   shared:    every sample to every node.
// Throws ConfigError when there are fewer samples than nodes (iid, dirichlet).
std::vector<Shard> make_shards(const Split& split, std::span<const std::uint8_t> labels,
                               std::size_t nodes, std::uint64_t seed);

// Samples that node `rank` takes in one epoch: size / nodes, the first size mod nodes ranks one
// more. The same for every split, so budgets are comparable and no node trains alone at the end.
std::uint64_t epoch_samples(std::uint64_t size, std::uint64_t nodes, std::uint64_t rank);

}  // namespace dpwa::train
