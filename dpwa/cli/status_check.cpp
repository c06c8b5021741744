#include <algorithm>
#include <array>
#include <string_view>

#include "dpwa/cli/node_status.h"

namespace dpwa::cli {
namespace {

const Json* list_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_array() ? &*found : nullptr;
}

bool has_failed(const Json& peer) {
  constexpr std::array<std::string_view, 4> failures{"timed_out", "unreachable", "protocol",
                                                     "rejected"};
  return peer.is_object() &&
         std::ranges::find(failures, raw_text(peer, "last_failure")) != failures.end();
}

// A node that trains and reaches none of its peers trains alone.
bool is_alone(const Json& document) {
  const Json* peers = list_in(document, "peers");
  return raw_text(document, "state") == "training" && peers != nullptr && !peers->empty() &&
         std::all_of(peers->begin(), peers->end(), has_failed);
}

bool holds_in_quarantine(const Json& document, const std::string& name) {
  const Json* peers = list_in(document, "peers");
  if (peers == nullptr) return false;
  return std::any_of(peers->begin(), peers->end(), [&name](const Json& peer) {
    if (!peer.is_object() || raw_text(peer, "name") != name) return false;
    const auto left = peer.find("quarantined_ms");
    return left != peer.end() && left->is_number() && *left > 0;
  });
}

std::string problem_of(const NodeStatus& node, std::span<const NodeStatus> all) {
  if (std::string absence = absence_of(node); !absence.empty()) return absence;
  const std::string state = raw_text(node.document, "state");
  if (state == "-") return "answers with no status";
  if (state == "stale") return "its trainer is gone";
  if (is_alone(node.document)) return "reaches none of its peers";
  std::string by;
  for (const NodeStatus& other : all) {
    if (!absence_of(other).empty()) continue;
    if (holds_in_quarantine(other.document, node.name)) by += (by.empty() ? "" : ", ") + other.name;
  }
  return by.empty() ? "" : "in quarantine at " + by;
}

}  // namespace

std::vector<std::string> status_problems(std::span<const NodeStatus> nodes) {
  std::vector<std::string> problems;
  for (const NodeStatus& node : nodes) {
    const std::string problem = problem_of(node, nodes);
    if (!problem.empty()) problems.push_back(node.name + ": " + problem);
  }
  return problems;
}

}  // namespace dpwa::cli
