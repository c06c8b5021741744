#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
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

namespace dpwa::cli {
namespace {

using Json = nlohmann::ordered_json;

struct StatusOptions {
  std::string file;
  std::string name;
  bool json = false;
  unsigned timeout_ms = 2000;
};

std::vector<PeerAddress> addresses_of(const Config& config) {
  std::vector<PeerAddress> nodes;
  for (const NodeEntry& node : config.nodes)
    nodes.push_back({node.name, node.addresses, node.port});
  return nodes;
}

// A peer's document is data from the network: whatever is missing or of another type shows as "-".
std::string field(const Json& document, const char* key, int decimals = -1) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>();
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
    return peer.is_object() && field(peer, "transport") == "same_host";
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

Json parse(const StatusAnswer& answer) {
  const Json document = Json::parse(answer.json, nullptr, /*allow_exceptions=*/false);
  return document.is_object() ? document : Json::object();
}

void print_table(const Config& config, const std::vector<StatusAnswer>& answers,
                 std::ostream& out) {
  TextTable table({"node", "address", "state", "clock", "loss", "published", "pulls ok", "failed",
                   "served", "same host", "MB in", "MB out", "errors", "clipped", "refused",
                   "quarantined"});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const NodeEntry& node = config.nodes[i];
    const std::string address = node.host + ":" + std::to_string(node.port);
    if (!answers[i].error.empty()) {
      table.add({node.name, address, "no answer: " + answers[i].error});
      continue;
    }
    const Json status = parse(answers[i]);
    table.add({node.name, address, field(status, "state"), field(status, "clock", 1),
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
  out << document.dump(2) << '\n';
}

void show_status(const StatusOptions& options, CommandContext& context) {
  const Config config = load_cluster(options.file);
  const auto security = make_observer_security(config, options.name);
  const auto answers = query_status(config.cluster, addresses_of(config),
                                    std::chrono::milliseconds(options.timeout_ms), security.get());
  if (options.json) {
    print_json(config, answers, context.out);
  } else {
    print_table(config, answers, context.out);
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
