#include "dpwa/rules/final_models.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/distance_bound.h"

namespace dpwa {
namespace {

constexpr double most_medians = 30;
constexpr double harmless = 0.05;  // of the norm
constexpr double most_norms = 3;
// The exact distance may be this many times the one by the sketches, which chance does not make.
constexpr double most_understated = 3;

bool is_finite(const ModelSketch& sketch) {
  return std::isfinite(sketch.norm());
}

// Those that choose the medoid.
std::vector<std::size_t> references(std::span<const FinalModel> models) {
  std::vector<std::size_t> all, of_file;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!is_finite(models[i].sketch)) continue;
    all.push_back(i);
    if (models[i].of_file) of_file.push_back(i);
  }
  return of_file.size() >= 2 ? of_file : all;
}

double median_distance(std::span<const FinalModel> models, std::span<const std::size_t> others,
                       std::size_t from) {
  std::vector<double> distances;
  for (const std::size_t other : others) {
    if (other != from) distances.push_back(models[from].sketch.distance(models[other].sketch));
  }
  return lower_median(distances);
}

double bound_of(std::span<const FinalModel> models, std::span<const std::size_t> references,
                double median) {
  std::vector<double> norms;
  for (const std::size_t each : references) norms.push_back(models[each].sketch.norm());
  const double norm = lower_median(norms);
  const double bound = std::max(most_medians * median, harmless * norm);
  // Models of zeros have no scale.
  return norm > 0 ? std::min(bound, most_norms * norm) : bound;
}

}  // namespace

bool FinalChoice::all() const {
  return std::ranges::none_of(left_out, [](const auto& each) { return each.has_value(); });
}

FinalChoice choose_final_models(std::span<const FinalModel> models, std::size_t own) {
  DPWA_INVARIANT(own < models.size(), "the own model is one of those to choose from", own,
                 models.size());
  FinalChoice choice;
  choice.left_out.resize(models.size());
  const auto judges = references(models);
  if (judges.size() < 2) {
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (!judges.empty() && !is_finite(models[i].sketch))
        choice.left_out[i] = std::numeric_limits<double>::infinity();
    }
    return choice;
  }
  std::size_t medoid = judges.front();
  double median = median_distance(models, judges, medoid);
  for (const std::size_t each : judges) {
    const double other = median_distance(models, judges, each);
    if (other < median) {
      medoid = each;
      median = other;
    }
  }
  choice.bound = bound_of(models, judges, median);
  std::size_t left = 0;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const FinalModel& model = models[i];
    const double distance = model.sketch.distance(models[medoid].sketch);
    const double exact = model.own_distance;
    const bool understated = exact > choice.bound &&
                             exact > most_understated * model.sketch.distance(models[own].sketch);
    if (!(distance <= choice.bound) || understated) {
      choice.left_out[i] = understated ? exact : distance;
    } else {
      ++left;
    }
  }
  if (left < 2) {
    for (std::size_t i = 0; i < models.size(); ++i) {
      const double distance = models[own].sketch.distance(models[i].sketch);
      choice.left_out[i] = i == own ? std::nullopt : std::optional(distance);
    }
  }
  return choice;
}

}  // namespace dpwa
