#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/cli/commands.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/config/config.h"
#include "dpwa/net/status_query.h"
#include "dpwa/security/security.h"
#include "dpwa/wire/messages.h"
#include "dpwa/wire/plain_text.h"

namespace dpwa::cli {
namespace {

using Json = nlohmann::ordered_json;

struct StatusOptions {
  std::string file;
  std::string name;
  bool json = false;
  unsigned timeout_ms = 2000;
};

// A peer's document is data from the network: whatever is missing or of another type shows as "-".
std::string text_of(const Json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_string()) return "-";
  return found->get<std::string>();
}

// To be shown: what could steer a terminal, or feign another row, is replaced.
std::string field(const Json& document, const char* key, int decimals = -1) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return "-";
  if (found->is_string())
    return wire::to_plain_text(found->get_ref<const std::string&>(), wire::max_name_bytes);
  if (!found->is_number()) return "-";
  if (decimals < 0) return found->dump();
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, found->get<double>());
  return text;
}

std::string megabytes(const Json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", found->get<double>() / 1e6);
  return text;
}

// How many of its peers a node reads from memory, such as "2/3".
std::string peers_on_same_host(const Json& document) {
  const auto peers = document.find("peers");
  if (peers == document.end() || !peers->is_array()) return "-";
  const auto count = std::count_if(peers->begin(), peers->end(), [](const Json& peer) {
    return peer.is_object() && text_of(peer, "transport") == "same_host";
  });
  return std::to_string(count) + "/" + std::to_string(peers->size());
}

std::string firewall_field(const Json& document, const char* key) {
  const auto firewall = document.find("firewall");
  if (firewall == document.end() || !firewall->is_object()) return "-";
  return field(*firewall, key);
}

// Parameters that the firewall kept out, for whatever reason.
std::string refused(const Json& document) {
  const auto firewall = document.find("firewall");
  if (firewall == document.end() || !firewall->is_object()) return "-";
  std::uint64_t sum = 0;
  for (const char* key : {"distance_refused", "not_finite"}) {
    const auto found = firewall->find(key);
    if (found == firewall->end() || !found->is_number_unsigned()) return "-";
    sum += found->get<std::uint64_t>();
  }
  return std::to_string(sum);
}

// A node to ask: of the file, or one that joined as the nodes of the file have it.
struct Asked {
  PeerAddress address;
  std::string shown;  // HOST:PORT
};

std::vector<Asked> of_file(const Config& config) {
  std::vector<Asked> nodes;
  for (const NodeEntry& node : config.nodes)
    nodes.push_back(
        {{node.name, node.addresses, node.port}, node.host + ":" + std::to_string(node.port)});
  return nodes;
}

// A document nested so deeply that copying it would use up the stack is none.
Json parse(const StatusAnswer& answer) {
  constexpr int deepest = 16;
  bool too_deep = false;
  const auto look = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  const Json document = Json::parse(answer.json, look, /*allow_exceptions=*/false);
  return document.is_object() && !too_deep ? document : Json::object();
}

// What the answers say of each member, by name: its entry where it is held alive, else the gravest.
std::map<std::string, Json> members_in(const std::vector<StatusAnswer>& answers) {
  const auto rank = [](const Json& member) {
    const std::string status = text_of(member, "status");
    return status == "alive" ? 0 : status == "left" ? 3 : status == "dead" ? 2 : 1;
  };
  std::map<std::string, Json> members;
  for (const StatusAnswer& answer : answers) {
    const Json document = parse(answer);
    const auto list = document.find("members");
    if (list == document.end() || !list->is_array()) continue;
    for (const Json& member : *list) {
      if (!member.is_object()) continue;
      const std::string name = text_of(member, "name");
      const auto [found, first] = members.try_emplace(name, member);
      const bool alive = rank(member) == 0 && rank(found->second) != 0;
      if (!first && (alive || (rank(found->second) != 0 && rank(member) > rank(found->second))))
        found->second = member;
    }
  }
  return members;
}

// Those that joined and are not known yet; at most so many that a liar cannot keep this busy.
std::vector<Asked> joined(const std::map<std::string, Json>& members,
                          const std::vector<Asked>& known) {
  constexpr std::size_t most = 1024;
  std::vector<Asked> found;
  for (const auto& [name, member] : members) {
    const bool is_known =
        std::ranges::any_of(known, [&](const Asked& node) { return node.address.name == name; });
    const auto port = member.find("port");
    const std::string address = text_of(member, "address");
    const std::string status = text_of(member, "status");
    const bool runs = status == "alive" || status == "suspect";
    if (is_known || !runs || !wire::is_plain_text(name) || !wire::is_plain_text(address) ||
        port == member.end() || !port->is_number_unsigned() || *port > 65535)
      continue;
    if (known.size() + found.size() >= most) break;
    const auto number = port->get<std::uint16_t>();
    found.push_back({{name, {address}, number}, address + ":" + std::to_string(number)});
  }
  return found;
}

std::vector<PeerAddress> addresses_of(const std::vector<Asked>& nodes) {
  std::vector<PeerAddress> addresses;
  for (const Asked& node : nodes) addresses.push_back(node.address);
  return addresses;
}

void print_table(const std::vector<Asked>& nodes, const std::vector<StatusAnswer>& answers,
                 std::ostream& out) {
  const auto members = members_in(answers);
  TextTable table({"node", "address", "member", "state", "clock", "loss", "published", "pulls ok",
                   "failed", "served", "same host", "MB in", "MB out", "errors", "clipped",
                   "refused", "quarantined"});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string& name = nodes[i].address.name;
    const std::string& address = nodes[i].shown;
    const auto held = members.find(name);
    const std::string member = held == members.end() ? "-" : field(held->second, "status");
    if (!answers[i].error.empty()) {
      table.add({name, address, member, "no answer: " + answers[i].error});
      continue;
    }
    const Json status = parse(answers[i]);
    table.add({name, address, member, field(status, "state"), field(status, "clock", 1),
               field(status, "loss", 4), field(status, "published"), field(status, "pulls_ok"),
               field(status, "pulls_failed"), field(status, "snapshots_served"),
               peers_on_same_host(status), megabytes(status, "bytes_received"),
               megabytes(status, "bytes_served"), field(status, "protocol_errors"),
               firewall_field(status, "distance_clipped"), refused(status),
               firewall_field(status, "quarantined_peers")});
  }
  table.print(out);
}

void print_json(const Config& config, const std::vector<StatusAnswer>& answers, std::ostream& out) {
  Json document;
  document["schema"] = 1;
  document["cluster"] = config.cluster;
  document["nodes"] = Json::array();
  for (const StatusAnswer& answer : answers) {
    Json node;
    node["name"] = answer.name;
    node["answered"] = answer.error.empty();
    if (answer.error.empty()) node["status"] = parse(answer);
    if (!answer.error.empty()) node["error"] = answer.error;
    document["nodes"].push_back(std::move(node));
  }
  out << document.dump(2, ' ', /*ensure_ascii=*/true) << '\n';  // control characters as well
}

void show_status(const StatusOptions& options, CommandContext& context) {
  const Config config = load_cluster(options.file);
  const auto security = make_observer_security(config, options.name);
  const auto timeout = std::chrono::milliseconds(options.timeout_ms);
  std::vector<Asked> nodes = of_file(config);
  auto answers = query_status(config.cluster, addresses_of(nodes), timeout, security.get());
  const auto more = joined(members_in(answers), nodes);
  if (!more.empty()) {
    auto of_joined = query_status(config.cluster, addresses_of(more), timeout, security.get());
    nodes.insert(nodes.end(), more.begin(), more.end());
    answers.insert(answers.end(), of_joined.begin(), of_joined.end());
  }
  if (options.json) {
    print_json(config, answers, context.out);
  } else {
    print_table(nodes, answers, context.out);
  }
}

}  // namespace

void add_status_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command =
      parent.add_subcommand("status", "Ask every node of a cluster file how it is doing");
  command->add_option("--config", options->file, "The cluster file")->required();
  command->add_option("--name", options->name,
                      "What {name} in the paths of the security section stands for (default: the "
                      "first node whose files can be read here)");
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each node")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { show_status(*options, context); });
}

}  // namespace dpwa::cli
