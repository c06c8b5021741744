#include "interpolation/registry.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "interpolation/policies.h"

namespace dpwa {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool within(const InterpolationParameterSpec& spec, double value) {
  return std::isfinite(value) && value >= spec.minimum && value <= spec.maximum;
}

std::string range_of(const InterpolationParameterSpec& spec) {
  const bool below = std::isfinite(spec.minimum), above = std::isfinite(spec.maximum);
  std::ostringstream text;
  if (below && above) {
    text << spec.minimum << " to " << spec.maximum;
  } else if (below) {
    text << "at least " << spec.minimum;
  } else if (above) {
    text << "at most " << spec.maximum;
  } else {
    text << "any finite number";
  }
  return text.str();
}

std::string accepted_parameters(const InterpolationMethod& method) {
  std::vector<std::string> names;
  for (const InterpolationParameterSpec& spec : method.parameters) names.push_back(spec.name);
  return names.empty() ? "no parameters" : join(names);
}

void check(const InterpolationMethod& method) {
  const std::string subject = "interpolation method '" + method.name + "'";
  if (method.name.empty()) throw std::invalid_argument("an interpolation method needs a name");
  if (!method.make) throw std::invalid_argument(subject + " has no maker");
  std::set<std::string> seen;
  for (const InterpolationParameterSpec& spec : method.parameters) {
    if (!seen.insert(spec.name).second) {
      throw std::invalid_argument(subject + " lists parameter '" + spec.name + "' twice");
    }
    if (!within(spec, spec.default_value)) {
      throw std::invalid_argument(subject + ": the default of '" + spec.name +
                                  "' is outside its range (" + range_of(spec) + ")");
    }
  }
}

}  // namespace

void InterpolationRegistry::add(InterpolationMethod method) {
  check(method);
  if (find(method.name)) {
    throw std::invalid_argument("interpolation method '" + method.name + "' is already registered");
  }
  methods_.push_back(std::move(method));
}

const InterpolationMethod* InterpolationRegistry::find(const std::string& name) const {
  const auto found = std::find_if(methods_.begin(), methods_.end(),
                                  [&](const auto& method) { return method.name == name; });
  return found == methods_.end() ? nullptr : &*found;
}

std::vector<std::string> InterpolationRegistry::names() const {
  std::vector<std::string> names;
  for (const InterpolationMethod& method : methods_) names.push_back(method.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<Interpolation> InterpolationRegistry::make(
    const std::string& name, const InterpolationParameters& parameters) const {
  const InterpolationMethod* method = find(name);
  if (!method) {
    throw std::invalid_argument("unknown interpolation method '" + name +
                                "'; accepted: " + join(names()));
  }
  InterpolationParameters complete;
  for (const InterpolationParameterSpec& spec : method->parameters) {
    complete[spec.name] = spec.default_value;
  }
  for (const auto& [key, value] : parameters) {
    const auto spec = std::find_if(method->parameters.begin(), method->parameters.end(),
                                   [&](const auto& candidate) { return candidate.name == key; });
    if (spec == method->parameters.end()) {
      throw std::invalid_argument("interpolation method '" + name + "' has no parameter '" + key +
                                  "'; accepted: " + accepted_parameters(*method));
    }
    if (!within(*spec, value)) {
      std::ostringstream text;
      text << "parameter '" << key << "' of interpolation method '" << name << "' is " << value
           << "; accepted: " << range_of(*spec);
      throw std::invalid_argument(text.str());
    }
    complete[key] = value;
  }
  return method->make(complete);
}

InterpolationRegistry& interpolation_registry() {
  static auto& registry = *new InterpolationRegistry([] {
    InterpolationRegistry built_in;
    for (InterpolationMethod& method : built_in_policies()) built_in.add(std::move(method));
    return built_in;
  }());
  return registry;
}

}  // namespace dpwa
