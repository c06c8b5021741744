#pragma once

#include <map>
#include <string>

namespace dpwa {

// What a factor policy may look at: both ends' progress at the moment of a blend.
// A clock counts steps (a float: blends average it); a loss is the last training loss.
struct FactorInput {
  double clock = 0;
  double peer_clock = 0;
  double loss = 0;
  double peer_loss = 0;
};

// The inputs that a policy's factor depends on.
struct FactorUses {
  bool clock = false;
  bool peer_clock = false;
  bool loss = false;
  bool peer_loss = false;
};

// Interpolation factor policy: how far a node moves towards its peer,
//   x <- x + f * (x_peer - x),   f in [0, 1].
// Policies are pure, immutable and may be called from any thread. A policy states its formula and
// nothing else: a result that is not finite or lies outside [0, 1] is mended by
// GuardedInterpolation.
class Interpolation {
 public:
  virtual ~Interpolation() = default;
  virtual double factor(const FactorInput& input) const = 0;

  // GuardedInterpolation refuses a negative or non-finite value among these inputs only, so a
  // policy of clocks goes on when a loss is NaN. A policy that does not say is taken to use all
  // four.
  virtual FactorUses uses() const { return {true, true, true, true}; }
};

// Numeric parameters of a policy by name, as written under its key in the cluster file.
using InterpolationParameters = std::map<std::string, double>;

}  // namespace dpwa
