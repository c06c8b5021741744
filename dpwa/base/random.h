#pragma once

#include <boost/random/mersenne_twister.hpp>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace dpwa {

// The project's source of randomness: Boost.Random engine and distributions, whose sequences are
// the same with every compiler and standard library. Always passed in; one owner, one thread.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high);   // in [low, high)
  std::uint64_t below(std::uint64_t bound);  // in [0, bound); bound > 0
  bool bernoulli(double probability);        // true with that probability
  double normal(double mean, double deviation);
  std::uint64_t next() { return engine_(); }

 private:
  boost::random::mt19937_64 engine_;
};

// An independent seed for a purpose, e.g. derive_seed(seed, {role, rank, epoch}). SplitMix64
// finaliser.
std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path);

// FNV-1a, 64 bits: turns a name into an element of such a path. The result is the same on every
// machine.
std::uint64_t hash_of(std::string_view name);

}  // namespace dpwa
