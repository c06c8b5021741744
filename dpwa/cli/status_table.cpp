#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ostream>

#include "dpwa/base/plain_text.h"
#include "dpwa/cli/node_status.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/wire/messages.h"

namespace dpwa::cli {
namespace {

std::string megabytes(const Json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number()) return "-";
  const double amount = found->get<double>() / 1e6;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", amount < 1000 ? 1 : 0, amount);
  return text;
}

// How many of its peers a node reads from memory, such as "2/3".
std::string peers_on_same_host(const Json& document) {
  const auto peers = document.find("peers");
  if (peers == document.end() || !peers->is_array()) return "-";
  const auto count = std::count_if(peers->begin(), peers->end(), [](const Json& peer) {
    return peer.is_object() && raw_text(peer, "transport") == "same_host";
  });
  return std::to_string(count) + "/" + std::to_string(peers->size());
}

std::uint64_t count_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// What is not as it should be, in words: a sound node has none.
std::string notes(const Json& document) {
  const auto found = document.find("firewall");
  const Json firewall =
      found != document.end() && found->is_object() ? *found : Json(Json::object());
  std::string text;
  const auto note = [&text](std::uint64_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  };
  note(count_in(document, "protocol_errors"), "errors");
  note(count_in(firewall, "distance_clipped"), "clipped");
  note(count_in(firewall, "distance_refused") + count_in(firewall, "not_finite"), "refused");
  note(count_in(firewall, "quarantined_peers"), "quarantined");
  const auto collective = document.find("collective");
  const bool waits = collective != document.end() && collective->is_object() &&
                     collective->contains("waits") && (*collective)["waits"] == true &&
                     raw_text(*collective, "exchange").size() > 1;  // and has looked for whom
  if (!waits) return text;
  std::string whom;
  if (const auto late = collective->find("late"); late != collective->end() && late->is_array()) {
    for (const Json& name : *late) {
      if (!name.is_string()) continue;
      whom += whom.empty() ? "" : ", ";
      whom += to_plain_text(name.get_ref<const std::string&>(), wire::max_name_bytes);
    }
  }
  text += (text.empty() ? "waits for " : ", waits for ") + (whom.empty() ? "others" : whom);
  return text;
}

// Under the table, where a node was told of names that have not answered it.
void print_unverified(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  std::uint64_t most = 0;
  for (const NodeStatus& node : nodes)
    most = std::max(most, count_in(node.document, "members_unverified"));
  if (most == 0) return;
  out << "and up to " << most << " unverified members: others tell of them, and they have not "
      << "answered at their address\n";
}

// What a node says of the group in which it averages gradients; null: nothing.
const Json* group_of(const NodeStatus& node) {
  const auto found = node.document.find("collective");
  return found != node.document.end() && found->is_object() ? &*found : nullptr;
}

// "1 of 4"; "apart" while it trains without a group, "-" before there is one.
std::string rank_text(const Json& group) {
  const auto apart = group.find("apart");
  if (apart != group.end() && *apart == true) return "apart";
  const std::string rank = field_text(group, "rank");
  return rank == "-" ? rank : rank + " of " + field_text(group, "size");
}

// Of nodes that step together.
void print_group_table(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  TextTable table({"node", "address", "member", "state", "clock", "loss", "rank", "group", "engine",
                   "MB averaged", "notes"});
  for (const NodeStatus& node : nodes) {
    if (const std::string absence = absence_of(node); !absence.empty()) {
      table.add({node.name, node.address, node.member, absence});
      continue;
    }
    const Json& status = node.document;
    const Json* const found = group_of(node);
    const Json group = found != nullptr ? *found : Json(Json::object());
    table.add({node.name, node.address, node.member, field_text(status, "state"),
               field_text(status, "clock", 1), field_text(status, "loss", 4), rank_text(group),
               field_text(group, "epoch"), field_text(group, "engine"),
               megabytes(status, "gradient_bytes"), notes(status)});
  }
  table.print(out);
}

void print_pull_table(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  TextTable table({"node", "address", "member", "state", "clock", "loss", "pulls ok", "failed",
                   "MB in", "MB out", "memory", "notes"});
  for (const NodeStatus& node : nodes) {
    if (const std::string absence = absence_of(node); !absence.empty()) {
      table.add({node.name, node.address, node.member, absence});
      continue;
    }
    const Json& status = node.document;
    table.add({node.name, node.address, node.member, field_text(status, "state"),
               field_text(status, "clock", 1), field_text(status, "loss", 4),
               field_text(status, "pulls_ok"), field_text(status, "pulls_failed"),
               megabytes(status, "bytes_received"), megabytes(status, "bytes_served"),
               peers_on_same_host(status), notes(status)});
  }
  table.print(out);
}

}  // namespace

void print_status_table(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  const bool steps_together =
      std::ranges::any_of(nodes, [](const NodeStatus& node) { return group_of(node) != nullptr; });
  if (steps_together) {
    print_group_table(nodes, out);
  } else {
    print_pull_table(nodes, out);
  }
  print_unverified(nodes, out);
}

}  // namespace dpwa::cli
