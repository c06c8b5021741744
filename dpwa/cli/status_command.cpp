#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/node_status.h"
#include "dpwa/config/config.h"
#include "dpwa/config/locations.h"
#include "dpwa/config/nodes.h"
#include "dpwa/net/status_query.h"
#include "dpwa/security/security.h"

namespace dpwa::cli {
namespace {

struct StatusOptions {
  std::string file;
  std::string name;
  bool json = false;
  bool check = false;
  unsigned watch_seconds = 0;  // 0 = once
  unsigned timeout_ms = 2000;
};

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
std::vector<Asked> joined(const std::vector<NodeStatus>& known) {
  constexpr std::size_t most = 1024;
  std::vector<Asked> found;
  for (const auto& [name, member] : members_in(known)) {
    const bool is_known = std::ranges::find(known, name, &NodeStatus::name) != known.end();
    const auto port = member.find("port");
    const std::string address = raw_text(member, "address");
    const std::string status = raw_text(member, "status");
    const bool runs = status == "alive" || status == "suspect";
    if (is_known || !runs || !is_plain_text(name) || !is_plain_text(address) ||
        port == member.end() || !port->is_number_unsigned() || *port > 65535)
      continue;
    if (known.size() + found.size() >= most) break;
    const auto number = port->get<std::uint16_t>();
    found.push_back({{name, {address}, number}, address + ":" + std::to_string(number)});
  }
  return found;
}

// The answers of the processes of a cluster. `servers`: of backend kvstore.
struct Found {
  std::vector<NodeStatus> nodes;
  std::vector<NodeStatus> servers;
};

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

void print_json(const Config& config, const Found& found, std::ostream& out) {
  Json document;
  document["schema"] = 1;
  document["cluster"] = config.cluster;
  document["nodes"] = list_of(found.nodes);
  if (!found.servers.empty()) document["servers"] = list_of(found.servers);
  out << document.dump(2, ' ', /*ensure_ascii=*/true) << '\n';  // control characters as well
}

struct Asking {
  Config config;
  std::shared_ptr<Security> security;
  std::chrono::milliseconds timeout;
};

std::vector<NodeStatus> ask(const Asking& asking, const std::vector<Asked>& processes) {
  std::vector<PeerAddress> addresses;
  for (const Asked& process : processes) addresses.push_back(process.address);
  const auto answers =
      query_status(asking.config.cluster, addresses, asking.timeout, asking.security.get());
  std::vector<NodeStatus> found;
  for (std::size_t i = 0; i < processes.size(); ++i)
    found.push_back(
        {addresses[i].name, processes[i].shown, "-", answers[i].error, parse_status(answers[i])});
  return found;
}

// The nodes that answer at the addresses of the seeds, each once; none: the silence of all seeds.
std::vector<NodeStatus> ask_seeds(const Asking& asking) {
  std::vector<Asked> places;
  for (const NodeEntry& seed : asking.config.seeds) {
    for (const std::string& address : peer_address(seed).addresses)
      places.push_back({{"", {address}, seed.port}, address + ":" + std::to_string(seed.port)});
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

// The nodes of the file, in its order, or of its seeds, then those that joined; and the servers.
Found ask_all(const Asking& asking) {
  const Config& config = asking.config;
  const bool by_seeds = config.nodes.empty();
  Found found{by_seeds ? ask_seeds(asking) : ask(asking, all_of(config.nodes)), {}};
  if (const std::vector<Asked> more = joined(found.nodes); !more.empty()) {
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
  if (config.backend == Backend::kvstore)
    found.servers = ask(asking, all_of(config.kvstore.servers));
  return found;
}

void print_tables(const Found& found, Backend of_file, std::ostream& out) {
  print_status_table(found.nodes, out, of_file);
  if (found.servers.empty()) return;
  out << '\n';
  print_server_table(found.servers, out);
}

void show_once(const Asking& asking, const StatusOptions& options, CommandContext& context) {
  const Found found = ask_all(asking);
  if (options.json) {
    print_json(asking.config, found, context.out);
  } else {
    print_tables(found, asking.config.backend, context.out);
  }
  if (!options.check) return;
  const std::size_t listed = asking.config.nodes.size();
  const auto of_file = std::span(found.nodes).first(listed > 0 ? listed : found.nodes.size());
  auto problems = status_problems(of_file);
  for (std::string& problem : server_problems(found.servers)) problems.push_back(problem);
  for (const std::string& problem : problems) context.err << problem << '\n';
  if (!problems.empty()) context.exit_code = 1;
}

// Runs until a signal ends the process or the reader of the tables goes away.
void watch(const Asking& asking, unsigned seconds, CommandContext& context) {
  stop_signal::install();
  const std::chrono::seconds pause(seconds);
  for (bool first = true; context.out; first = false) {
    const Found found = ask_all(asking);
    if (context.terminal) {
      context.out << "\x1b[H\x1b[2J";  // home, clear
    } else if (!first) {
      context.out << '\n';
    }
    print_tables(found, asking.config.backend, context.out);
    context.out.flush();
    std::this_thread::sleep_for(pause);
  }
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

void show_status(const StatusOptions& options, CommandContext& context) {
  Asking asking{load_cluster(options.file), nullptr, std::chrono::milliseconds(options.timeout_ms)};
  require_known(asking.config, options.name);
  asking.security = make_observer_security(asking.config, options.name);
  if (options.watch_seconds > 0) {
    watch(asking, options.watch_seconds, context);
  } else {
    show_once(asking, options, context);
  }
}

}  // namespace

void add_status_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command =
      parent.add_subcommand("status", "Show the state of every node of a cluster file");
  command->footer("The exit code is 0 also when no node answers, except with --check.");
  command->add_option("FILE,--config", options->file, "The cluster file")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  command->add_option("--name", options->name,
                      "What {name} in the paths of the security section stands for (default: the "
                      "first node whose files can be read here)");
  CLI::Option* json =
      command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  CLI::Option* check = command->add_flag("--check", options->check,
                                         "List the nodes of the file that are missing or failing "
                                         "on standard error, and exit with 1 if there are any");
  command
      ->add_flag("--watch{2}", options->watch_seconds,
                 "Repeat every 2 s, or every SECONDS with --watch=SECONDS, until Ctrl-C")
      ->check(CLI::Range(1U, 3600U))
      ->excludes(json)
      ->excludes(check);
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each node")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { show_status(*options, context); });
}

}  // namespace dpwa::cli
