#include "dpwa/observe/recent_pulls.h"

#include <cstddef>
#include <limits>
#include <set>
#include <string>

namespace dpwa::observe {
namespace {

constexpr std::size_t most_peers = 4096;  // of a node: as many as it may know

// Of a counter that may have begun again with its process.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now >= before ? now - before : now;
}

}  // namespace

void RecentPulls::add(const NodeStatus& node, double time) {
  std::set<std::string> listed;
  for (const Json& peer : list_in(node.document, "peers")) {
    if (!peer.is_object() || listed.size() >= most_peers) continue;
    listed.insert(field_text(peer, "name"));
    const std::uint64_t ok = count_in(peer, "attempts_ok");
    const std::uint64_t failed = count_in(peer, "attempts_failed");
    const auto [found, first] = pairs_.try_emplace({node.name, field_text(peer, "name")});
    Pair& pair = found->second;
    const std::uint64_t more_ok = first ? 0 : growth(pair.ok, ok);
    const std::uint64_t more_failed = first ? 0 : growth(pair.failed, failed);
    pair.ok = ok;
    pair.failed = failed;
    if (first) pair.time = -std::numeric_limits<double>::infinity();
    if (more_ok + more_failed == 0) continue;
    pair.recent_ok = more_ok;
    pair.recent_failed = more_failed;
    pair.time = time;
    pair.failure = more_failed > 0 ? field_text(peer, "last_failure") : "";
  }
  std::erase_if(pairs_, [&](const auto& each) {
    return each.first.first == node.name && !listed.contains(each.first.second);
  });
}

Json RecentPulls::to_json(double time, double longest_age) const {
  Json edges = Json::array();
  for (const auto& [names, pair] : pairs_) {
    const double age = time - pair.time;
    if (age > longest_age) continue;
    Json failure = pair.failure.empty() ? Json() : Json(pair.failure);
    edges.push_back(Json::array(
        {names.first, names.second, pair.recent_ok, pair.recent_failed, age, std::move(failure)}));
  }
  return edges;
}

}  // namespace dpwa::observe
