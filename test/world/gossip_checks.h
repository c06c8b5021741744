#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/world/conduct.h"

namespace dpwa::world::testing {

// What must never happen among the nodes of a gossip, told by them. No node sees this.
class GossipChecks {
 public:
  // Of new initial weights, or of a model that a node ended with.
  std::uint64_t next_number() { return ++numbers_; }
  // A node has published weights of this lineage.
  void published(const std::string& name, std::uint64_t lineage, const Model& model, bool trains);
  void blended(const std::string& name, const Model& own, const Model& other);
  // A node has ended with `mean` over the models with these numbers.
  void ended(const std::string& name, const std::set<std::uint64_t>& models, const Model& mean);
  void fail(std::string problem);

  const std::vector<std::string>& problems() const { return problems_; }
  // The nodes that have ended, and how many models are in their means.
  const std::map<std::string, std::size_t>& ends() const { return ends_; }
  // The models that nodes have ended with, by the numbers of those that they are means of.
  const std::map<std::set<std::uint64_t>, std::vector<double>>& means() const { return means_; }
  // That somebody has trained, or only shown.
  std::size_t lineages() const { return trained_.size(); }
  std::size_t shown() const { return origin_of_.size(); }

 private:
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, std::uint64_t> origin_of_;  // by lineage
  std::set<std::uint64_t> trained_;                   // lineages
  std::map<std::set<std::uint64_t>, std::vector<double>> means_;
  std::map<std::string, std::size_t> ends_;
  std::vector<std::string> problems_;
};

}  // namespace dpwa::world::testing
