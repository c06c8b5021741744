#include "dpwa/cli/node_status.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string_view>
#include <utility>

#include "dpwa/cli/text_table.h"

namespace dpwa::cli {
namespace {

bool has_failed(const Json& peer) {
  constexpr std::array<std::string_view, 4> failures{"timed_out", "unreachable", "protocol",
                                                     "rejected"};
  return peer.is_object() &&
         std::ranges::find(failures, raw_text(peer, "last_failure")) != failures.end();
}

// A node that trains and reaches none of its peers trains alone.
bool is_alone(const Json& document) {
  const Json& peers = list_in(document, "peers");
  return raw_text(document, "state") == "training" && !peers.empty() &&
         std::ranges::all_of(peers, has_failed);
}

// Whether what `name` sent that node last must not be blended.
bool refuses_parameters_of(const Json& document, const std::string& name) {
  return std::ranges::any_of(list_in(document, "peers"), [&name](const Json& peer) {
    return peer.is_object() && raw_text(peer, "name") == name &&
           raw_text(peer, "last_failure") == "unusable";
  });
}

std::string problem_of(const NodeStatus& node, std::span<const NodeStatus> all) {
  if (std::string absence = absence_of(node); !absence.empty()) return absence;
  const std::string state = raw_text(node.document, "state");
  if (state == "-") return "answers, but without a status";
  if (state == "stale") return "its trainer is gone";
  if (is_alone(node.document)) return "reaches none of its peers";
  std::string by;
  for (const NodeStatus& other : all) {
    if (!absence_of(other).empty()) continue;
    if (refuses_parameters_of(other.document, node.name))
      by += (by.empty() ? "" : ", ") + other.name;
  }
  return by.empty() ? "" : "its parameters are refused by " + by;
}

// How many of its peers a node reads from memory, such as "2/3".
std::string peers_on_same_host(const NodeStatus& node) {
  const Json& peers = list_in(node.document, "peers");
  if (peers.is_null()) return "-";
  const auto count = std::ranges::count_if(peers, [](const Json& peer) {
    return peer.is_object() && raw_text(peer, "transport") == "same_host";
  });
  return std::to_string(count) + "/" + std::to_string(peers.size());
}

// What is unusual about a node, in words; empty for a healthy node of the file.
std::string notes_on(const NodeStatus& node) {
  const Json& document = node.document;
  const Json& firewall = object_in(document, "firewall");
  const Json& store = object_in(document, "kvstore");
  Notes notes;
  if (node.joined) notes.add("joined at " + node.address);
  if (node.member != "-" && node.member != "alive") notes.add("member " + node.member);
  notes.count(count_in(document, "protocol_errors"), "errors");
  notes.count(count_in(firewall, "distance_clipped"), "clipped");
  notes.count(count_in(firewall, "distance_refused") + count_in(firewall, "not_finite"), "refused");
  notes.count(count_in(document, "ledger_passed_over"), "passed over");
  if (flag_in(store, "finishing") && raw_text(document, "state") == "training")
    notes.add("done, waits for others");
  notes.count(count_in(store, "dropped"), "dropped");
  notes.count(count_in(store, "not_finite"), "not finite");
  if (const std::string whom = field_text(document, "waits_for"); whom != "-")
    notes.add("waits for " + whom);
  const Json& collective = object_in(document, "collective");
  const bool waits = flag_in(collective, "waits") &&
                     raw_text(collective, "exchange").size() > 1;  // and looked for the late nodes
  const std::string whom = names_in(collective, "late");
  if (waits) notes.add("waits for " + (whom.empty() ? "others" : whom));
  if (flag_in(collective, "seeks"))
    notes.add(raw_text(collective, "minority").size() > 1 ? "lacks a majority" : "seeks a group");
  return notes.text;
}

// Printed under the table when a node has heard of names that have not answered it.
void print_unverified(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  std::uint64_t most = 0;
  for (const NodeStatus& node : nodes)
    most = std::max(most, count_in(node.document, "members_unverified"));
  if (most == 0) return;
  out << "and up to " << most << " unverified members: other nodes report them, but they have\n"
      << "not answered at their address\n";
}

// Printed under the table of nodes whose models are known to differ, or to be equal.
void print_distances(const std::vector<NodeStatus>& nodes, std::ostream& out) {
  std::vector<std::pair<double, std::string>> shares;
  for (const NodeStatus& node : nodes) {
    const Json& told = object_in(node.document, "to_mean");
    const auto share = told.find("relative");
    if (share != told.end() && share->is_number())
      shares.emplace_back(share->get<double>(), node.name);
  }
  if (shares.empty()) return;
  std::ranges::sort(shares);
  char text[80];
  std::snprintf(text, sizeof text, "distance to the mean model: median %.2g %%, at most %.2g %% (",
                100 * shares[(shares.size() - 1) / 2].first, 100 * shares.back().first);
  out << text << shares.back().second << ")\n";
}

// "1 of 4"; "apart" while it trains without a group, "-" before there is one.
std::string rank_text(const Json& group) {
  if (flag_in(group, "apart")) return "apart";
  const std::string rank = field_text(group, "rank");
  return rank == "-" ? rank : rank + " of " + field_text(group, "size");
}

Column rank_in(const char* object) {
  return {"rank",
          [=](const NodeStatus& node) { return rank_text(object_in(node.document, object)); }};
}

// Of nodes that step together.
std::vector<Column> group_columns() {
  const char* const group = "collective";
  return {text_column("loss", "loss", 4), rank_in(group), text_column("group", "epoch", -1, group),
          text_column("engine", "engine", -1, group),
          megabytes_column("MB averaged", "gradient_bytes")};
}

// Of workers of the parameter server.
std::vector<Column> worker_columns() {
  const char* const store = "kvstore";
  return {text_column("loss", "loss", 4),
          rank_in(store),
          text_column("last step", "outcome", -1, store),
          text_column("wait ms", "waited_ms", 1, store),
          megabytes_column("MB in", "bytes_received", store),
          megabytes_column("MB out", "bytes_sent", store)};
}

// Of nodes that pull.
std::vector<Column> pull_columns() {
  return {text_column("loss", "loss", 4),
          text_column("pulls ok", "pulls_ok"),
          text_column("failed", "pulls_failed"),
          megabytes_column("MB in", "bytes_received"),
          megabytes_column("MB out", "bytes_served"),
          {"memory", peers_on_same_host}};
}

bool is_of_store(const NodeStatus& node) {
  return raw_text(node.document, "backend") == "kvstore";
}

// An empty object: the document itself.
const Json& part_of(const NodeStatus& process, const char* object) {
  return *object == '\0' ? process.document : object_in(process.document, object);
}

}  // namespace

void Notes::add(const std::string& note) {
  text += (text.empty() ? "" : ", ") + note;
}

void Notes::count(std::uint64_t number, const char* what) {
  if (number > 0) add(std::to_string(number) + ' ' + what);
}

Column text_column(const char* head, const char* key, int decimals, const char* object) {
  return {head, [=](const NodeStatus& process) {
            return field_text(part_of(process, object), key, decimals);
          }};
}

Column megabytes_column(const char* head, const char* key, const char* object) {
  return {head,
          [=](const NodeStatus& process) { return megabytes(part_of(process, object), key); }};
}

void print_table(const char* kind, const std::vector<Column>& columns,
                 const std::vector<NodeStatus>& processes, std::ostream& out) {
  std::vector<std::string> head{kind};
  for (const Column& column : columns) head.push_back(column.head);
  TextTable table(head, status_width);
  for (const NodeStatus& process : processes) {
    std::vector<std::string> row{process.name};
    const std::string absence = absence_of(process);
    const bool known = process.member != "-" && !process.member.empty();
    if (!absence.empty()) {
      row.push_back(absence + "; address " + process.address +
                    (known ? ", member " + process.member : ""));
    } else {
      for (const Column& column : columns) row.push_back(column.cell(process));
    }
    table.add(std::move(row));
  }
  table.print(out);
}

std::vector<std::string> status_problems(std::span<const NodeStatus> nodes) {
  std::vector<std::string> problems;
  for (const NodeStatus& node : nodes) {
    const std::string problem = problem_of(node, nodes);
    if (!problem.empty()) problems.push_back(node.name + ": " + problem);
  }
  return problems;
}

void print_status_table(const std::vector<NodeStatus>& nodes, std::ostream& out, Backend of_file) {
  const bool silent =
      std::ranges::all_of(nodes, [](const NodeStatus& node) { return !absence_of(node).empty(); });
  const bool steps_together = std::ranges::any_of(nodes, [](const NodeStatus& node) {
    return !object_in(node.document, "collective").empty();
  });
  const bool store = std::ranges::any_of(nodes, is_of_store);
  const bool of_group = steps_together || (silent && of_file == Backend::collective);
  const bool of_store = !of_group && (store || (silent && of_file == Backend::kvstore));
  std::vector<Column> columns{text_column("state", "state"),
                              text_column("clock", "clock", of_store ? 0 : 1)};
  for (Column& column : of_group ? group_columns() : of_store ? worker_columns() : pull_columns())
    columns.push_back(std::move(column));
  columns.push_back({"notes", notes_on});
  print_table("node", columns, nodes, out);
  print_distances(nodes, out);
  print_unverified(nodes, out);
}

}  // namespace dpwa::cli
