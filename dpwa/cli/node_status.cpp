#include "dpwa/cli/node_status.h"

#include <cstdio>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/messages.h"

namespace dpwa::cli {

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

}  // namespace dpwa::cli
