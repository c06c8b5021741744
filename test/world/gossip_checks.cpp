#include "test/world/gossip_checks.h"

#include <utility>

namespace dpwa::world::testing {

void GossipChecks::fail(std::string problem) {
  constexpr std::size_t enough = 10;
  if (problems_.size() < enough) problems_.push_back(std::move(problem));
}

void GossipChecks::published(const std::string& name, std::uint64_t lineage, const Model& model,
                             bool trains) {
  if (lineage == 0) return;
  if (trains) trained_.insert(lineage);
  const auto [known, is_new] = origin_of_.emplace(lineage, model.origin);
  if (!is_new && known->second != model.origin)
    fail(name + " publishes other weights under a lineage that has some");
}

void GossipChecks::blended(const std::string& name, const Model& own, const Model& other) {
  if (own.origin != other.origin) fail(name + " blends weights of another origin");
}

void GossipChecks::ended(const std::string& name, const std::set<std::uint64_t>& models,
                         const Model& mean) {
  ends_[name] = models.size();
  if (models.empty()) return;  // it knew of nobody else
  const auto [known, is_new] = means_.emplace(models, mean.values);
  if (!is_new && known->second != mean.values)
    fail(name + " ends with another mean over the same models");
}

}  // namespace dpwa::world::testing
