#include <limits>
#include <stdexcept>

#include "dpwa/config/sections.h"
#include "interpolation/registry.h"

namespace dpwa::config {

std::string read_method(const Field& field) {
  return field.choice(interpolation_registry().names());
}

double read_divergence_threshold(const Field& field) {
  return field.number(0, std::numeric_limits<double>::infinity());
}

InterpolationParameters read_parameters(const std::string& method, const Section& section,
                                        const std::vector<std::string>& also_known) {
  const std::vector<InterpolationParameterSpec>& specs =
      interpolation_registry().find(method)->parameters;
  std::vector<std::string> known = also_known;
  for (const InterpolationParameterSpec& spec : specs) known.push_back(spec.name);
  section.accept_only(known);
  InterpolationParameters parameters;
  for (const InterpolationParameterSpec& spec : specs) {
    if (const Field* field = section.find(spec.name)) {
      parameters[spec.name] = field->number(spec.minimum, spec.maximum);
    }
  }
  return parameters;
}

void read_interpolation(const Section& section, InterpolationConfig& interpolation) {
  if (const Field* field = section.find("method")) interpolation.method = read_method(*field);
  interpolation.parameters =
      read_parameters(interpolation.method, section, {"method", "divergence_threshold"});
  if (const Field* field = section.find("divergence_threshold")) {
    interpolation.divergence_threshold = read_divergence_threshold(*field);
  }
}

}  // namespace dpwa::config
