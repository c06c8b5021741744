#include "dpwa/launch/nodes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "dpwa/config/node_threads.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"
#include "dpwa/launch/claims.h"

namespace dpwa::launch {
namespace {

bool is_local(const Introduction& introduction) {
  return !introduction.host_given && config::is_loopback(introduction.host);
}

// The address by which other hosts reach the meeting point; empty: there is none.
std::string outer_meeting_point(const std::vector<Introduction>& introductions) {
  for (const Introduction& introduction : introductions) {
    if (!is_local(introduction) && !config::is_loopback(introduction.meeting_point))
      return introduction.meeting_point;
  }
  return {};
}

bool share_processors(const Introduction& a, const Introduction& b) {
  return std::ranges::any_of(a.processors, [&b](int processor) {
    return std::ranges::find(b.processors, processor) != b.processors.end();
  });
}

}  // namespace

std::string to_text(const Introduction& introduction) {
  return nlohmann::json{{"host", introduction.host},
                        {"host_given", introduction.host_given},
                        {"bind", introduction.bind},
                        {"port", introduction.port},
                        {"meeting_point", introduction.meeting_point},
                        {"processors", introduction.processors}}
      .dump();
}

Introduction introduction_from(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Introduction introduction;
    json.at("host").get_to(introduction.host);
    json.at("host_given").get_to(introduction.host_given);
    json.at("bind").get_to(introduction.bind);
    json.at("port").get_to(introduction.port);
    json.at("meeting_point").get_to(introduction.meeting_point);
    json.at("processors").get_to(introduction.processors);
    if (introduction.host.empty() || introduction.port == 0) throw std::runtime_error("no address");
    return introduction;
  } catch (const std::exception&) {
    throw std::runtime_error("a process has sent an address that this version cannot read");
  }
}

std::string node_name(int rank, std::string pattern) {
  const std::string_view mark = config::rank_mark;
  if (pattern.empty()) pattern = "rank" + std::string(mark);
  for (auto at = pattern.find(mark); at != std::string::npos; at = pattern.find(mark, at))
    pattern.replace(at, mark.size(), std::to_string(rank));
  return pattern;
}

std::vector<NodeEntry> settle(const std::vector<Introduction>& introductions) {
  std::vector<NodeEntry> nodes;
  const bool several_hosts = !std::ranges::all_of(introductions, is_local);
  const std::string outer = outer_meeting_point(introductions);
  for (const Introduction& introduction : introductions) {
    NodeEntry node;
    node.name = node_name(static_cast<int>(nodes.size()));
    node.host = introduction.host;
    node.bind = introduction.bind;
    node.port = introduction.port;
    if (several_hosts && is_local(introduction)) {
      if (outer.empty())
        throw std::runtime_error("no address is known at which the other processes reach " +
                                 node.name +
                                 "; accepted: DPWA_HOST in its environment, or MASTER_ADDR as "
                                 "the address of its host");
      node.host = outer;
    }
    nodes.push_back(std::move(node));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    bool has_neighbour = false, alone_there = true;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (k == i || nodes[k].host != nodes[i].host) continue;
      has_neighbour = true;
      alone_there = alone_there && !share_processors(introductions[i], introductions[k]);
    }
    if (has_neighbour && alone_there) nodes[i].cores = introductions[i].processors;
  }
  return nodes;
}

SeededPlace seeded_place(const LauncherEnvironment& environment, const std::string& pattern) {
  SeededPlace place;
  auto claim = first_claim(claims_of_processes(), environment);
  const bool counted = environment.has("WORLD_SIZE") || environment.has("PET_NNODES") ||
                       !environment.has("JOB_COMPLETION_INDEX");
  const bool of_script = !claim && environment.has("RANK");
  if (of_script) {
    place.name = node_name(environment.need_number("RANK", 0, most_ranks - 1, ""), pattern);
    place.local_rank = environment.number("LOCAL_RANK", 0, most_ranks - 1).value_or(0);
  } else if (claim) {
    place.name = node_name(claim->place.rank, pattern);
    place.local_rank = claim->place.local_rank;
  } else if (!pattern.empty()) {
    throw ConfigError("--name or DPWA_NAME: " + config::shown(pattern) +
                      " is for a process that has a rank; accepted: a name, or torchrun, srun, "
                      "mpirun, or RANK in the environment");
  }
  if (!claim && counted && (!of_script || environment.has("WORLD_SIZE")))
    claim = first_claim(claims_of_pods(), environment);
  if (claim) place.share = {claim->place.rank, claim->place.size};
  return place;
}

std::string name_in_file(const Config& config, const LaunchPlace& place) {
  if (!config.self.empty()) return node_name(place.rank, config.self);
  const auto size = static_cast<std::size_t>(place.size);
  if (size != config.nodes.size()) {
    fail_at_key(config, "nodes",
                "the file lists " + std::to_string(config.nodes.size()) + ", and " +
                    place.launcher + " has started " + std::to_string(size) +
                    (size == 1 ? " process" : " processes") +
                    "; accepted: as many, no list (the processes are the nodes then), or --name, "
                    "which the launcher does not overrule");
  }
  return config.nodes[static_cast<std::size_t>(place.rank)].name;
}

int local_rank(const Config& config, const LauncherEnvironment& environment) {
  if (config.by_seeds) return seeded_place(environment).local_rank;
  std::optional<LaunchPlace> place;
  try {
    place = find_place(environment);
  } catch (const ConfigError&) {  // of a process that has its name from elsewhere
  }
  const bool counted_by_launcher = place && (config.self_added || config.nodes.size() == 1 ||
                                             std::cmp_equal(config.self_index(), place->rank));
  return counted_by_launcher ? place->local_rank : static_cast<int>(place_on_own_host(config));
}

}  // namespace dpwa::launch
