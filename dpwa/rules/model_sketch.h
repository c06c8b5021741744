#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace dpwa {

// A model's interpolated values x, projected onto 64 directions: sums[k] is the sum of s(i) x(i)
// over all i with i mod 64 = k, where the sign s(i) is pseudo-random. The norm of a sketch
// estimates that of the model (Alon, Matias, Szegedy 1996), and the difference of two sketches is
// the sketch of the difference. So the distance of any two models is known without holding both,
// with a standard deviation of 18 % or less where the difference lies in many elements.
//
// The signs are the same on all nodes, and so are the bits of a sketch. Who knows them can craft a
// model that is far away while its sketch is not: FinalModel::own_distance tells.
struct ModelSketch {
  static constexpr std::size_t size = 64;
  std::array<double, size> sums{};

  double norm() const { return distance({}); }
  double distance(const ModelSketch& other) const {
    double squares = 0;
    for (std::size_t k = 0; k < size; ++k) {
      const double difference = sums[k] - other.sums[k];
      squares += difference * difference;
    }
    return std::sqrt(squares);
  }
  bool operator==(const ModelSketch&) const = default;
};

}  // namespace dpwa
