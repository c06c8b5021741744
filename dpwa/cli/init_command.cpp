#include <CLI/App.hpp>
#include <algorithm>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/base/threads.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/cluster_template.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"

namespace dpwa::cli {
namespace {

// Writes the whole file or nothing. Throws ConfigError with the reason.
void write_cluster_file(const std::filesystem::path& path, std::string_view text) try {
  AtomicFile file(path);
  file.set_mode(0644);
  file.write(text);
  file.commit();
} catch (const std::system_error& error) {
  throw ConfigError(path.string() + ": cannot be written: " + error.code().message());
}

constexpr unsigned most_nodes = 10000;
constexpr unsigned most_servers = 1000;
constexpr unsigned default_servers = 2;

struct InitOptions {
  unsigned nodes = 4;
  bool nodes_given = false;
  std::string host = "127.0.0.1";
  std::vector<std::string> hosts;  // instead of `host`, by commas: nodes dealt out to them
  unsigned port = ClusterTemplate().port;
  bool port_given = false;
  std::string file = "cluster.yaml";
  std::string backend = "gossip";
  unsigned servers = 0;  // 0: not given
  std::string security;  // empty: psk where a host is beyond loopback
  bool force = false;
};

// The host resolved. Throws CLI::ValidationError when peers could not dial it.
NodeEntry resolve_host(const std::string& host, const std::string& option) {
  const std::string accepted = "; accepted: an IP address or a host name known here";
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  if (host.empty() || host.find_first_not_of(plain) != std::string::npos) {
    throw CLI::ValidationError(option, config::shown(host) + " is not a host" + accepted);
  }
  const Resolved resolved = dpwa::resolve_host(host);
  if (resolved.addresses.empty()) {
    throw CLI::ValidationError(
        option, config::shown(host) + " cannot be resolved (" + resolved.error + ")" + accepted);
  }
  if (config::is_wildcard(resolved.addresses.front())) {
    throw CLI::ValidationError(
        option, config::shown(host) + " is not an address that peers can dial" + accepted);
  }
  NodeEntry node;
  node.name = node.host = host;
  node.addresses = resolved.addresses;
  return node;
}

// CLI11 would drop an empty host, but an empty host means that one was forgotten.
std::vector<std::string> split_hosts(const std::vector<std::string>& lists) {
  std::vector<std::string> hosts;
  for (const std::string& list : lists) {
    std::vector<std::string> of_list;
    boost::algorithm::split(of_list, list, [](char c) { return c == ','; });
    for (std::string& host : of_list) hosts.push_back(boost::algorithm::trim_copy(host));
  }
  return hosts;
}

std::vector<NodeEntry> resolve_hosts(const InitOptions& options) {
  if (options.hosts.empty()) return {resolve_host(options.host, "--host")};
  std::vector<NodeEntry> resolved;
  for (const std::string& host : split_hosts(options.hosts)) {
    NodeEntry node = resolve_host(host, "--hosts");
    for (const NodeEntry& other : resolved) {
      if (std::ranges::find_first_of(node.addresses, other.addresses) == node.addresses.end())
        continue;
      throw CLI::ValidationError("--hosts", config::shown(host) + " is the same machine as " +
                                                config::shown(other.host) +
                                                "; accepted: each host once");
    }
    resolved.push_back(std::move(node));
  }
  return resolved;
}

// The port of the first node of each host; `count` ports follow each other. Throws
// CLI::ValidationError when they do not fit.
unsigned first_port(const InitOptions& options, unsigned count) {
  if (!options.port_given) return std::min(options.port, first_ephemeral_port - count);
  const unsigned last = options.port + count - 1;
  if (last > 65535) {
    throw CLI::ValidationError(
        "--port", std::to_string(count) + (count == 1 ? " process" : " processes") + " from port " +
                      std::to_string(options.port) + " reach port " + std::to_string(last) +
                      "; accepted: a port up to " + std::to_string(first_ephemeral_port - count) +
                      " (the highest that keeps " + "all below " +
                      std::to_string(first_ephemeral_port) + ")");
  }
  return options.port;
}

struct Plan {
  ClusterTemplate wanted;
  unsigned last_port = 0;
  std::vector<std::string> beyond;       // the hosts that are not loopback
  std::vector<std::string> unreachable;  // loopback, where other nodes are on another machine
};

Plan plan(const InitOptions& options) {
  const std::vector<NodeEntry> hosts = resolve_hosts(options);
  const auto count = static_cast<unsigned>(hosts.size());
  ClusterTemplate wanted;
  wanted.hosts.clear();
  for (const NodeEntry& host : hosts) wanted.hosts.push_back(host.host);
  wanted.nodes = options.hosts.empty() || options.nodes_given ? options.nodes : count;
  if (wanted.nodes < count) {
    throw CLI::ValidationError("--nodes", std::to_string(wanted.nodes) + " nodes on " +
                                              std::to_string(count) +
                                              " hosts; accepted: at least one for each");
  }
  wanted.backend = options.backend;
  if (wanted.backend == "kvstore") {
    wanted.servers = options.servers > 0 ? options.servers : std::max(default_servers, count);
  } else if (options.servers > 0) {
    throw CLI::ValidationError(
        "--servers", "backend " + wanted.backend + " has none; accepted: --backend kvstore");
  }
  const unsigned nodes_per_host = (wanted.nodes + count - 1) / count;
  const unsigned per_host = nodes_per_host + (wanted.servers + count - 1) / count;
  wanted.port = static_cast<std::uint16_t>(first_port(options, per_host));
  wanted.server_port = static_cast<std::uint16_t>(wanted.port + nodes_per_host);
  Plan planned;
  std::vector<std::string> on_loopback;
  for (const NodeEntry& host : hosts) {
    auto& kind = config::is_loopback(host.addresses.front()) ? on_loopback : planned.beyond;
    kind.push_back(host.host);
  }
  const bool beyond = !planned.beyond.empty();
  wanted.psk = options.security == "psk" || (options.security.empty() && beyond);
  wanted.insecure = beyond && !wanted.psk;
  // The processors of another machine are unknown here.
  const LocalMachine machine;
  if (std::ranges::all_of(hosts, [&](const NodeEntry& host) { return machine.hosts(host); })) {
    wanted.processors = usable_processors();
  } else if (beyond) {
    planned.unreachable = on_loopback;
  }
  planned.last_port = wanted.port + per_host - 1;
  planned.wanted = std::move(wanted);
  return planned;
}

void explain_ports(const Plan& planned, CommandContext& context) {
  const ClusterTemplate& wanted = planned.wanted;
  if (wanted.port > last_ephemeral_port || planned.last_port < first_ephemeral_port) return;
  const unsigned count = planned.last_port - wanted.port + 1;
  context.err << "warning: ports " << wanted.port << " to " << planned.last_port
              << " overlap the range that Linux assigns to outgoing connections ("
              << first_ephemeral_port << " to " << last_ephemeral_port
              << "), so a node may find its port in use; --port " << first_ephemeral_port - count
              << " or lower avoids this\n";
}

void init(const InitOptions& options, CommandContext& context) {
  const bool to_stdout = options.file == "-";
  const Plan planned = plan(options);
  const ClusterTemplate& wanted = planned.wanted;
  if (!to_stdout && !options.force && std::filesystem::exists(options.file)) {
    throw CLI::ValidationError(
        "-o", "'" + options.file + "' exists; accepted: another file, or --force to replace it");
  }
  const std::string text = cluster_file_text(wanted);
  if (to_stdout) {
    context.out << text;
  } else {
    write_cluster_file(options.file, text);
    context.err << "wrote " << options.file << ": " << config::counted(wanted.nodes, "node");
    if (wanted.servers > 0) context.err << " and " << config::counted(wanted.servers, "server");
    context.err << " on " << config::joined(wanted.hosts);
    if (planned.last_port == wanted.port) {
      context.err << ", port " << wanted.port << '\n';
    } else {
      context.err << ", ports " << wanted.port << " to " << planned.last_port << '\n';
    }
  }
  explain_ports(planned, context);
  if (wanted.psk) {
    const auto folder =
        to_stdout ? std::filesystem::path() : std::filesystem::path(options.file).parent_path();
    context.err << "the nodes need a key: make it once with dpwa keygen -o "
                << (folder / "cluster.key").string()
                << "; every machine has a copy beside its copy of the cluster file\n";
  }
  const auto subject = [](const std::vector<std::string>& hosts) {
    return "warning: " + config::joined(hosts) + (hosts.size() == 1 ? " is" : " are");
  };
  if (wanted.insecure) {
    context.err << subject(planned.beyond)
                << " not loopback, so the file says security: {mode: insecure}; use it on a "
                   "private network only\n";
  }
  if (!planned.unreachable.empty()) {
    context.err << subject(planned.unreachable)
                << " loopback: nodes on other machines do not reach the nodes there\n";
  }
}

}  // namespace

void add_init_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = parent.add_subcommand("init", "Write an annotated cluster file");
  CLI::Option* nodes = command
                           ->add_option("--nodes", options->nodes,
                                        "Number of nodes; default with --hosts: one for each host")
                           ->check(CLI::Range(1U, most_nodes))
                           ->capture_default_str();
  CLI::Option* host =
      command->add_option("--host", options->host, "Host of every node")->capture_default_str();
  command
      ->add_option("--hosts", options->hosts,
                   "Hosts, separated by commas; the nodes are assigned to them in turn")
      ->allow_extra_args(false)
      ->type_name("HOST,...")
      ->excludes(host);
  CLI::Option* port =
      command
          ->add_option("--port", options->port,
                       "Port of the first node of each host; its other nodes have the next ports")
          ->check(CLI::Range(1U, 65535U))
          ->capture_default_str();
  command->add_option("-o,--output", options->file, "File to write, - for standard output")
      ->capture_default_str();
  command->add_option("--backend", options->backend, "Back end of the nodes")
      ->check(one_of({"gossip", "collective", "kvstore"}))
      ->capture_default_str();
  command
      ->add_option(
          "--servers", options->servers,
          "Servers of backend kvstore, with the ports after those of the nodes; default 2, "
          "or one for each host")
      ->check(CLI::Range(1U, most_servers));
  command
      ->add_option("--security", options->security,
                   "security.mode of the nodes; default psk, on loopback insecure")
      ->check(one_of({"insecure", "psk"}));
  command->add_flag("--force", options->force, "Replace the file if it exists");
  command->callback([options, nodes, port, &context] {
    options->nodes_given = nodes->count() > 0;
    options->port_given = port->count() > 0;
    init(*options, context);
  });
}

}  // namespace dpwa::cli
