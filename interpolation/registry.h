#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "interpolation/interpolation.h"

namespace dpwa {

// One parameter that a policy accepts. The range is inclusive.
struct InterpolationParameterSpec {
  std::string name;
  double default_value = 0;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
};

struct InterpolationMethod {
  std::string name;
  std::vector<InterpolationParameterSpec> parameters;
  // Receives every parameter of the list above: given or default, within its range.
  std::function<std::unique_ptr<Interpolation>(const InterpolationParameters&)> make;
};

// The factor policies by name. The built-in ones are registered on first use; a program adds its
// own with `interpolation_registry().add({...})` before it loads a cluster file that names it. Not
// synchronised: add at start-up, read from anywhere afterwards.
class InterpolationRegistry {
 public:
  // Throws std::invalid_argument when the name is taken or empty, the maker is missing, or a
  // parameter is listed twice or has a default outside its range.
  void add(InterpolationMethod method);
  // Null when there is none. The pointer is good until the next add().
  const InterpolationMethod* find(const std::string& name) const;
  std::vector<std::string> names() const;  // sorted
  // Fills in defaults and builds the policy. Throws std::invalid_argument that names the method or
  // parameter at fault and what is accepted.
  std::unique_ptr<Interpolation> make(const std::string& name,
                                      const InterpolationParameters& parameters) const;

 private:
  std::vector<InterpolationMethod> methods_;
};

InterpolationRegistry& interpolation_registry();

}  // namespace dpwa
