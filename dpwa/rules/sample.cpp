#include "dpwa/rules/sample.h"

#include "dpwa/base/invariant.h"

namespace dpwa {
namespace {

// Not std::pow, whose last digits differ between libraries.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (double square = base; exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return result;
}

}  // namespace

double highest_draw(std::uint64_t count, Random& random) {
  DPWA_INVARIANT(count > 0, "the highest draw is one of some", count);
  const double chance = random.uniform(0, 1);
  // The lowest value whose share of the distribution lies above `chance`.
  std::uint64_t low = 1;
  std::uint64_t high = draw_values;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    const double share =
        power(static_cast<double>(middle) / static_cast<double>(draw_values), count);
    if (share > chance) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return static_cast<double>(lowest_draw + low - 1);
}

// Each of them is one of the `values` that are no higher, with equal probability: a binomial number
// that is known to be at least 1, by inversion.
std::uint64_t draws_at_highest(double highest, std::uint64_t count, Random& random) {
  DPWA_INVARIANT(count > 0 && highest >= static_cast<double>(lowest_draw),
                 "draws at the highest are some of those that were drawn", count, highest);
  const double values = highest - static_cast<double>(lowest_draw) + 1;
  if (values <= 1) return count;
  const double odds = 1 / (values - 1);
  const double none = power(1 - 1 / values, count);
  double chance = random.uniform(0, 1) * (1 - none);
  double probability = none;
  for (std::uint64_t ties = 1; ties < count; ++ties) {
    probability *= static_cast<double>(count - ties + 1) / static_cast<double>(ties) * odds;
    if (chance < probability) return ties;
    chance -= probability;
  }
  return count;
}

}  // namespace dpwa
