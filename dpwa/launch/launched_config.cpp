#include "dpwa/launch/launched_config.h"

#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/config/seeds.h"
#include "dpwa/config/text.h"
#include "dpwa/launch/place.h"

namespace dpwa {

LaunchedConfig::LaunchedConfig(std::filesystem::path file, std::string name,
                               std::vector<std::string> join, const launch::Meet& meet)
    : file_(std::move(file)),
      name_(std::move(name)),
      join_(std::move(join)),
      config_(load_config(file_, name_, join_, [&](Config& config) { place(config, meet); })) {}

// As one that the seeds of the file bring together with the others.
void LaunchedConfig::place_by_seeds(Config& config,
                                    const launch::LauncherEnvironment& environment) {
  const launch::SeededPlace place = launch::seeded_place(environment, config.self);
  share_ = place.share;
  if (place.name.empty()) return;
  NodeEntry self;
  self.name = config.self = place.name;
  self.port = launch::own_port(environment, place.local_rank, config::seed_port);
  config.nodes.push_back(std::move(self));
}

// As one of the processes that the launcher has started, which are the nodes.
void LaunchedConfig::place_by_meeting(Config& config,
                                      const launch::LauncherEnvironment& environment,
                                      const launch::Meet& meet) {
  if (config.backend == Backend::kvstore && !is_local(config.kvstore.type))
    fail_at_key(config, "nodes",
                "missing; accepted: the workers of backend kvstore, which its servers read in the "
                "same file, in the order of their ranks");
  const auto place = launch::find_place(environment);
  if (!place) return;
  if (!config.self.empty())
    fail_at_key(config, "nodes",
                config::shown(config.self) +
                    " as a name requires nodes, or seeds; accepted: these, "
                    "or no name (the nodes are rank0, rank1, ...)");
  if (config.gossip.daemon)
    fail_at_key(config, "gossip.daemon",
                "'true' requires nodes that the file lists; accepted: false, or nodes");
  config.nodes = meet(*place, config.cluster, own_endpoint(environment, place->local_rank));
  config.self = launch::node_name(place->rank);
  has_met_ = true;
}

void LaunchedConfig::place(Config& config, const launch::Meet& meet) {
  const launch::LauncherEnvironment environment = launch::launcher_environment();
  if (config.nodes.empty()) {
    config.seeds.empty() ? place_by_meeting(config, environment, meet)
                         : place_by_seeds(config, environment);
  } else if (const auto place = launch::find_place(environment)) {
    config.self = launch::name_in_file(config, *place);
  }
}

Config LaunchedConfig::reload() const {
  return reload_config(file_, name_, join_, [this](Config& fresh) {
    const bool placed = has_met_ || config_.by_seeds;
    if (fresh.nodes.empty() && placed) fresh.nodes = config_.nodes;
    fresh.self = config_.self;
  });
}

}  // namespace dpwa
