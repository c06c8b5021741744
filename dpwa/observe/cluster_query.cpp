#include "dpwa/observe/cluster_query.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/locations.h"
#include "dpwa/config/nodes.h"
#include "dpwa/net/host_names.h"
#include "dpwa/net/status_query.h"
#include "dpwa/observe/consensus.h"
#include "dpwa/security/security.h"

namespace dpwa::observe {
namespace {

// A process to ask: one of the file, or a node that joined, as the nodes of the file report it.
struct Asked {
  PeerAddress address;
  std::string shown;  // HOST:PORT
};

std::vector<Asked> all_of(const std::vector<NodeEntry>& entries) {
  std::vector<Asked> nodes;
  for (const NodeEntry& node : entries)
    nodes.push_back({peer_address(node), node.host + ":" + std::to_string(node.port)});
  return nodes;
}

// Nodes that joined and are not known yet. Their number is limited, so that a lying node cannot
// keep this command busy.
// `dead_too`: those that the others hold to be dead, because no list names them.
std::vector<Asked> joined(const std::vector<NodeStatus>& known, bool dead_too) {
  constexpr std::size_t most = 1024;
  std::vector<Asked> found;
  for (const auto& [name, member] : members_in(known)) {
    const bool is_known = std::ranges::find(known, name, &NodeStatus::name) != known.end();
    const auto port = member.find("port");
    const std::string address = raw_text(member, "address");
    const std::string status = raw_text(member, "status");
    const bool runs = status == "alive" || status == "suspect" || (dead_too && status == "dead");
    if (is_known || !runs || !is_plain_text(name) || !is_plain_text(address) ||
        port == member.end() || !port->is_number_unsigned() || *port > 65535)
      continue;
    if (known.size() + found.size() >= most) break;
    const auto number = port->get<std::uint16_t>();
    found.push_back({{name, {address}, number}, address + ":" + std::to_string(number)});
  }
  return found;
}

std::vector<NodeStatus> ask(const Asking& asking, const std::vector<Asked>& processes) {
  std::vector<PeerAddress> addresses;
  for (const Asked& process : processes) addresses.push_back(process.address);
  const auto answers =
      query_status(asking.config.cluster, addresses, asking.timeout, asking.security.get());
  std::vector<NodeStatus> found;
  for (std::size_t i = 0; i < processes.size(); ++i)
    found.push_back({addresses[i].name, processes[i].shown, "-", answers[i].error,
                     parse_status(answers[i]), /*joined=*/false, answers[i].nobody_listens,
                     answers[i].connected, addresses[i]});
  return found;
}

// The nodes that answer at the addresses of the seeds, each once; none: the silence of all seeds.
std::vector<NodeStatus> ask_seeds(const Asking& asking) {
  std::vector<Asked> places;
  for (const NodeEntry& seed : asking.config.seeds) {
    const PeerAddress place = peer_address(seed);
    for (const std::string& address : net::addresses_now(place))
      places.push_back({{"", {address}, seed.port}, address + ":" + std::to_string(seed.port)});
    net::resolve_again(place);  // for the next look
  }
  std::vector<NodeStatus> found, silent;
  for (NodeStatus& answer : ask(asking, places)) {
    answer.name = answer.error.empty() ? raw_text(answer.document, "node") : answer.address;
    const bool is_known = std::ranges::find(found, answer.name, &NodeStatus::name) != found.end();
    if (!answer.error.empty()) {
      silent.push_back(std::move(answer));
    } else if (!is_known && is_plain_text(answer.name)) {
      found.push_back(std::move(answer));
    }
  }
  return found.empty() ? silent : found;
}

Json list_of(const std::vector<NodeStatus>& all) {
  Json list = Json::array();
  for (const NodeStatus& status : all) {
    Json node;
    node["name"] = status.name;
    const std::string other = other_name(status);
    const bool answered = status.error.empty() && other.empty();
    node["answered"] = answered;
    if (answered) node["status"] = status.document;
    if (!answered) node["error"] = other.empty() ? status.error : absence_of(status);
    if (!other.empty()) node["answers_as"] = other;
    list.push_back(std::move(node));
  }
  return list;
}

// A node that joined is not in the file, but where the paths of the section have "{name}" it may
// have keys of its own. Throws ConfigError.
void require_known(const Config& config, const std::string& name) {
  if (name.empty()) return;
  const SecurityConfig& security = config.security;
  for (std::string path : {security.key_file, security.ca, security.cert, security.key}) {
    const auto place = path.find("{name}");
    if (place == std::string::npos) continue;
    if (std::filesystem::exists(path.replace(place, 6, name))) return;
  }
  config::check_process_name(config, name, config::Locations(config.file.string()));
}

}  // namespace

Asking make_asking(const std::filesystem::path& file, const std::string& name,
                   std::chrono::milliseconds timeout) {
  Asking asking{load_cluster(file), nullptr, timeout};
  require_known(asking.config, name);
  asking.security = make_observer_security(asking.config, name);
  const std::string& mode = asking.config.security.mode;
  if (!asking.security && (mode == "psk" || mode == "mtls"))
    fail_at_key(
        asking.config, "security.mode",
        mode + " has files with {name}, and the file lists no nodes; accepted: --name NAME");
  return asking;
}

ClusterStatus ask_all(const Asking& asking) {
  const Config& config = asking.config;
  const bool by_seeds = config.nodes.empty();
  ClusterStatus found{by_seeds ? ask_seeds(asking) : ask(asking, all_of(config.nodes)), {}};
  if (const std::vector<Asked> more = joined(found.nodes, by_seeds); !more.empty()) {
    for (NodeStatus& node : ask(asking, more)) {
      node.joined = !by_seeds;
      found.nodes.push_back(std::move(node));
    }
  }
  const auto members = members_in(found.nodes);
  for (NodeStatus& node : found.nodes) {
    if (const auto held = members.find(node.name); held != members.end())
      node.member = field_text(held->second, "status");
  }
  tell_distances(found.nodes);
  if (config.backend == Backend::kvstore)
    found.servers = ask(asking, all_of(config.kvstore.servers));
  return found;
}

Json to_json(const Config& config, const ClusterStatus& found) {
  Json document;
  document["schema"] = 1;
  document["cluster"] = config.cluster;
  document["nodes"] = list_of(found.nodes);
  if (!found.servers.empty()) document["servers"] = list_of(found.servers);
  return document;
}

}  // namespace dpwa::observe
