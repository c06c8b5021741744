#include "dpwa/base/random.h"

#include <boost/random/bernoulli_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>

#include "dpwa/base/invariant.h"

namespace dpwa {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): step and
// finaliser. A bijection of 64 bits in which every input bit reaches every output bit.
std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

double Random::uniform(double low, double high) {
  // Boost asserts low < high; an empty interval has one value.
  if (!(low < high)) return low;
  return boost::random::uniform_real_distribution<double>(low, high)(engine_);
}

std::uint64_t Random::below(std::uint64_t bound) {
  DPWA_INVARIANT(bound > 0, "a random number is below something", bound);
  return boost::random::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
}

bool Random::bernoulli(double probability) {
  return boost::random::bernoulli_distribution<double>(probability)(engine_);
}

double Random::normal(double mean, double deviation) {
  return boost::random::normal_distribution<double>(mean, deviation)(engine_);
}

std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  std::uint64_t derived = splitmix64(seed);
  // One more pass before each element: the result depends on the order and the length of the path,
  // and the seed cannot be exchanged with an element.
  for (const std::uint64_t element : path) derived = splitmix64(splitmix64(derived) + element);
  return derived;
}

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace dpwa
