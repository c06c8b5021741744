#include "dpwa/launch/nodes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dpwa/config/resolve.h"

namespace dpwa::launch {
namespace {

bool is_local(const Arrival& arrival) {
  return !arrival.host_given && config::is_loopback(arrival.host);
}

// The address by which other hosts reach the meeting point; empty: there is none.
std::string outer_meeting_point(const std::vector<Arrival>& arrivals) {
  for (const Arrival& arrival : arrivals) {
    if (!is_local(arrival) && !config::is_loopback(arrival.meeting_point))
      return arrival.meeting_point;
  }
  return {};
}

bool share_processors(const Arrival& a, const Arrival& b) {
  return std::ranges::any_of(a.processors, [&b](int processor) {
    return std::ranges::find(b.processors, processor) != b.processors.end();
  });
}

}  // namespace

std::string to_text(const Arrival& arrival) {
  return nlohmann::json{{"host", arrival.host},
                        {"host_given", arrival.host_given},
                        {"bind", arrival.bind},
                        {"port", arrival.port},
                        {"meeting_point", arrival.meeting_point},
                        {"processors", arrival.processors}}
      .dump();
}

Arrival arrival_from(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Arrival arrival;
    json.at("host").get_to(arrival.host);
    json.at("host_given").get_to(arrival.host_given);
    json.at("bind").get_to(arrival.bind);
    json.at("port").get_to(arrival.port);
    json.at("meeting_point").get_to(arrival.meeting_point);
    json.at("processors").get_to(arrival.processors);
    if (arrival.host.empty() || arrival.port == 0) throw std::runtime_error("no address");
    return arrival;
  } catch (const std::exception&) {
    throw std::runtime_error("a process has sent an address that this version cannot read");
  }
}

std::string node_name(int rank) {
  return "rank" + std::to_string(rank);
}

std::vector<NodeEntry> settle(const std::vector<Arrival>& arrivals) {
  std::vector<NodeEntry> nodes;
  const bool several_hosts = !std::ranges::all_of(arrivals, is_local);
  const std::string outer = outer_meeting_point(arrivals);
  for (const Arrival& arrival : arrivals) {
    NodeEntry node;
    node.name = node_name(static_cast<int>(nodes.size()));
    node.host = arrival.host;
    node.bind = arrival.bind;
    node.port = arrival.port;
    if (several_hosts && is_local(arrival)) {
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
      alone_there = alone_there && !share_processors(arrivals[i], arrivals[k]);
    }
    if (has_neighbour && alone_there) nodes[i].cores = arrivals[i].processors;
  }
  return nodes;
}

std::string name_in_file(const Config& config, const LaunchPlace& place) {
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

}  // namespace dpwa::launch
