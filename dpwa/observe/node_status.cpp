#include "dpwa/observe/node_status.h"

#include <cstdio>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/messages.h"

namespace dpwa::observe {
namespace {

const Json& no_value() {
  static const auto& null = *new Json();
  return null;
}

const Json& value_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found == document.end() ? no_value() : *found;
}

std::string plain(const Json& text) {
  return to_plain_text(text.get_ref<const std::string&>(), wire::max_name_bytes);
}

std::string with_decimals(double number, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

}  // namespace

std::string raw_text(const Json& document, const char* key) {
  const Json& value = value_in(document, key);
  return value.is_string() ? value.get<std::string>() : "-";
}

std::string field_text(const Json& document, const char* key, int decimals) {
  const Json& value = value_in(document, key);
  if (value.is_string()) return plain(value);
  if (!value.is_number()) return "-";
  return decimals < 0 ? value.dump() : with_decimals(value.get<double>(), decimals);
}

std::uint64_t count_in(const Json& document, const char* key) {
  const Json& value = value_in(document, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

const Json& object_in(const Json& document, const char* key) {
  static const Json& none = *new Json(Json::object());
  const Json& value = value_in(document, key);
  return value.is_object() ? value : none;
}

bool flag_in(const Json& document, const char* key) {
  return value_in(document, key) == true;
}

const Json& list_in(const Json& document, const char* key) {
  const Json& value = value_in(document, key);
  return value.is_array() ? value : no_value();
}

std::string names_in(const Json& document, const char* key) {
  std::string names;
  for (const Json& name : list_in(document, key)) {
    if (name.is_string()) names += (names.empty() ? "" : ", ") + plain(name);
  }
  return names;
}

std::string megabytes(const Json& document, const char* key) {
  const Json& value = value_in(document, key);
  if (!value.is_number()) return "-";
  const double amount = value.get<double>() / 1e6;
  return with_decimals(amount, amount < 1000 ? 1 : 0);
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

std::map<std::string, Json> members_in(const std::vector<NodeStatus>& nodes) {
  const auto rank = [](const Json& member) {
    const std::string status = raw_text(member, "status");
    return status == "alive" ? 0 : status == "left" ? 3 : status == "dead" ? 2 : 1;
  };
  std::map<std::string, Json> members;
  for (const NodeStatus& node : nodes) {
    for (const Json& member : list_in(node.document, "members")) {
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

std::string other_name(const NodeStatus& node) {
  const Json& name = value_in(node.document, "node");
  return node.error.empty() && name.is_string() && name != node.name ? plain(name) : "";
}

std::string absence_of(const NodeStatus& node) {
  if (node.error.starts_with("no answer")) return node.error;
  if (!node.error.empty()) return "no answer: " + node.error;
  const std::string other = other_name(node);
  return other.empty() ? "" : "answers as '" + other + "'";
}

}  // namespace dpwa::observe
