#include "dpwa/cli/node_status.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/messages.h"

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

std::string raw_text(const Json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_string()) return "-";
  return found->get<std::string>();
}

std::string field_text(const Json& document, const char* key, int decimals) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return "-";
  if (found->is_string())
    return to_plain_text(found->get_ref<const std::string&>(), wire::max_name_bytes);
  if (!found->is_number()) return "-";
  if (decimals < 0) return found->dump();
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, found->get<double>());
  return text;
}

std::string other_name(const NodeStatus& node) {
  const auto named = node.document.find("node");
  if (!node.error.empty() || named == node.document.end() || !named->is_string() ||
      *named == node.name)
    return "";
  return field_text(node.document, "node");
}

std::string absence_of(const NodeStatus& node) {
  if (!node.error.empty()) return "no answer: " + node.error;
  const std::string other = other_name(node);
  return other.empty() ? "" : "answers as '" + other + "'";
}

Json parse_status(const StatusAnswer& answer) {
  constexpr int deepest = 16;
  bool too_deep = false;
  const auto look = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  const Json document = Json::parse(answer.json, look, /*allow_exceptions=*/false);
  return document.is_object() && !too_deep ? document : Json::object();
}

std::map<std::string, Json> members_in(const std::vector<StatusAnswer>& answers) {
  const auto rank = [](const Json& member) {
    const std::string status = raw_text(member, "status");
    return status == "alive" ? 0 : status == "left" ? 3 : status == "dead" ? 2 : 1;
  };
  std::map<std::string, Json> members;
  for (const StatusAnswer& answer : answers) {
    const Json document = parse_status(answer);
    const auto list = document.find("members");
    if (list == document.end() || !list->is_array()) continue;
    for (const Json& member : *list) {
      if (!member.is_object()) continue;
      const std::string name = raw_text(member, "name");
      const auto [found, first] = members.try_emplace(name, member);
      const bool alive = rank(member) == 0 && rank(found->second) != 0;
      if (!first && (alive || (rank(found->second) != 0 && rank(member) > rank(found->second))))
        found->second = member;
    }
  }
  return members;
}

std::vector<std::string> status_problems(std::span<const NodeStatus> nodes) {
  std::vector<std::string> problems;
  for (const NodeStatus& node : nodes) {
    const std::string problem = problem_of(node, nodes);
    if (!problem.empty()) problems.push_back(node.name + ": " + problem);
  }
  return problems;
}

}  // namespace dpwa::cli
