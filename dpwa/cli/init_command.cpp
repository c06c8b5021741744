#include <CLI/App.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/atomic_file.h"
#include "dpwa/cli/cluster_template.h"
#include "dpwa/cli/commands.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/config/resolve.h"
#include "dpwa/node/processors.h"

namespace dpwa::cli {
namespace {

constexpr unsigned most_nodes = 10000;

struct InitOptions {
  unsigned nodes = 4;
  std::string host = "127.0.0.1";
  unsigned port = 45000;
  std::string file = "cluster.yaml";
  std::string security = "insecure";
  bool force = false;
};

// The host resolved. Throws CLI::ValidationError when peers could not dial it.
NodeEntry resolve_host(const std::string& host) {
  const std::string accepted = "; accepted: an IP address or a host name known here";
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  if (host.empty() || host.find_first_not_of(plain) != std::string::npos) {
    throw CLI::ValidationError("--host", "'" + host + "' is not a host" + accepted);
  }
  config::Resolver resolver;
  const config::Resolved& resolved = resolver.resolve(host);
  if (resolved.addresses.empty()) {
    throw CLI::ValidationError(
        "--host", "'" + host + "' cannot be resolved (" + resolved.error + ")" + accepted);
  }
  if (config::is_wildcard(resolved.addresses.front())) {
    throw CLI::ValidationError("--host",
                               "'" + host + "' is no address that peers can dial" + accepted);
  }
  NodeEntry node;
  node.host = host;
  node.addresses = resolved.addresses;
  return node;
}

ClusterTemplate plan(const InitOptions& options) {
  const unsigned last = options.port + options.nodes - 1;
  if (last > 65535) {
    throw CLI::ValidationError("--port", std::to_string(options.nodes) + " nodes from port " +
                                             std::to_string(options.port) + " reach port " +
                                             std::to_string(last) + "; accepted: up to 65535");
  }
  const NodeEntry node = resolve_host(options.host);
  ClusterTemplate wanted;
  wanted.nodes = options.nodes;
  wanted.host = options.host;
  wanted.port = static_cast<std::uint16_t>(options.port);
  wanted.psk = options.security == "psk";
  wanted.insecure = !wanted.psk && !config::is_loopback(node.addresses.front());
  // The processors of another machine are unknown here.
  if (LocalMachine().hosts(node)) wanted.processors = usable_processors();
  return wanted;
}

void init(const InitOptions& options, CommandContext& context) {
  const bool to_stdout = options.file == "-";
  const ClusterTemplate wanted = plan(options);
  if (!to_stdout && !options.force && std::filesystem::exists(options.file)) {
    throw CLI::ValidationError(
        "-o", "'" + options.file + "' exists; accepted: another file, or --force to replace it");
  }
  const std::string text = cluster_file_text(wanted);
  if (to_stdout) {
    context.out << text;
  } else {
    write_file_atomically(options.file, text);
    context.err << "wrote " << options.file << ": " << wanted.nodes
                << (wanted.nodes == 1 ? " node" : " nodes") << " on " << wanted.host << ", ports "
                << wanted.port << " to " << wanted.port + wanted.nodes - 1 << '\n';
  }
  if (wanted.psk) {
    context.err << "the nodes need the key that the file names: dpwa keygen makes it\n";
  }
  if (wanted.insecure) {
    context.err
        << "warning: " << wanted.host
        << " is not loopback, so the file says security: {mode: insecure}; use it on a private "
           "network only\n";
  }
}

}  // namespace

void add_init_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = parent.add_subcommand("init", "Write an annotated cluster file");
  command->add_option("--nodes", options->nodes, "Number of nodes")
      ->check(CLI::Range(1U, most_nodes))
      ->capture_default_str();
  command->add_option("--host", options->host, "Host of every node")->capture_default_str();
  command->add_option("--port", options->port, "Port of the first node; the others follow")
      ->check(CLI::Range(1U, 65535U))
      ->capture_default_str();
  command->add_option("-o,--output", options->file, "File to write, - for standard output")
      ->capture_default_str();
  command->add_option("--security", options->security, "security.mode of the nodes")
      ->check(CLI::IsMember({"insecure", "psk"}))
      ->capture_default_str();
  command->add_flag("--force", options->force, "Replace the file when it exists");
  command->callback([options, &context] { init(*options, context); });
}

}  // namespace dpwa::cli
