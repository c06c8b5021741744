#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa {

// The purpose of a stream of random numbers. The numbers of the enum never change: the meaning of a
// seed depends on them.
enum class SeedRole : std::uint64_t {
  weights = 1,       // initial parameters; common
  split = 2,         // which sample belongs to which shard; common
  order = 3,         // the order in which a node takes its shard; per rank
  noise = 4,         // dropout; per rank
  synthetic = 5,     // made-up data; common
  statistics = 6,    // samples that BatchNorm is measured on; common
  shared_order = 7,  // the order of samples that all nodes take in turns; common
};

// Independent streams, hash(seed, role, rank, epoch), from one seed for a whole run. Every node
// computes its own streams and the common ones by itself. Each result seeds a generator,
// dpwa::Random or one of LibTorch. The choice of peers has a stream too: it is derived from
// gossip.seed and the name of the node. Constant.
class SeedStreams {
 public:
  explicit SeedStreams(std::uint64_t seed) : seed_(seed) {}

  // The same on every node.
  std::uint64_t common(SeedRole role) const { return derive_seed(seed_, {number(role)}); }
  std::uint64_t common(SeedRole role, std::uint64_t epoch) const {
    return epoch_of(common(role), epoch);
  }
  // The stream of one node.
  std::uint64_t of_rank(SeedRole role, std::uint64_t rank) const {
    return derive_seed(seed_, {number(role), rank});
  }
  std::uint64_t of_rank(SeedRole role, std::uint64_t rank, std::uint64_t epoch) const {
    return epoch_of(of_rank(role, rank), epoch);
  }
  // The stream of two numbers, such as a rank that several nodes have and hash_of(name) of one of
  // them.
  std::uint64_t of_pair(SeedRole role, std::uint64_t first, std::uint64_t second) const {
    return derive_seed(seed_, {number(role), first, second});
  }

  // Epoch `epoch` of the stream of `seed`.
  static std::uint64_t epoch_of(std::uint64_t seed, std::uint64_t epoch) {
    return derive_seed(seed, {epoch});
  }

 private:
  static std::uint64_t number(SeedRole role) { return static_cast<std::uint64_t>(role); }

  std::uint64_t seed_;
};

// Fisher-Yates. std::shuffle gives other orders with other standard libraries.
template <typename Value>
void shuffle(std::vector<Value>& values, Random& random) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random.below(left)]);
}

}  // namespace dpwa
