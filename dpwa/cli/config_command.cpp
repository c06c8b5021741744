#include <CLI/App.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/cli/commands.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/host_check.h"
#include "dpwa/config/launched.h"
#include "dpwa/config/open_log.h"
#include "dpwa/security/security.h"

namespace dpwa::cli {
namespace {

struct CheckOptions {
  std::string file;
  std::string name;
};

void check(const CheckOptions& options, CommandContext& context) {
  const Config config = options.name.empty() ? load_launchable(options.file)
                                             : load_config(options.file, options.name);
  require_backend(config);
  check_log_file(config);
  if (!config.self.empty()) make_security(config);  // a ConfigError when its files are no good
  context.out << to_yaml(config);
  // The file may be meant for another host, so this is no error here.
  if (const auto problem = congestion_control_problem(config))
    context.err << "warning: " << *problem << " (a node that is started here refuses it)\n";
  context.err << "ok: " << options.file << ": cluster " << config.cluster << ", ";
  if (config.nodes.empty()) {
    context.err << "nodes come from the launcher (torchrun, srun, mpirun, Kubernetes)";
  } else {
    context.err << config.nodes.size() << (config.nodes.size() == 1 ? " node" : " nodes");
  }
  if (!config.self.empty()) {
    const NodeEntry& self = config.self_node();
    context.err << "; " << self.name << " listens on " << self.bind_host() << " port " << self.port;
  }
  context.err << '\n';
}

void add_config_check_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = parent.add_subcommand(
      "check", "Validate a cluster file and print the effective configuration as YAML");
  command->add_option("FILE", options->file, "The cluster file")->required();
  command->add_option("--name", options->name,
                      "Check as this node, with the DPWA_* variables that are set");
  command->callback([options, &context] { check(*options, context); });
}

struct NodesOptions {
  std::string file;
  bool local_only = false;
};

std::string cores_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) {
    if (!text.empty()) text += ',';
    text += std::to_string(core);
  }
  return text.empty() ? "-" : text;
}

void list_nodes(const NodesOptions& options, CommandContext& context) {
  const Config config = load_cluster(options.file);
  const LocalMachine machine;
  for (const NodeEntry& node : config.nodes) {
    const bool local = machine.hosts(node);
    if (options.local_only && !local) continue;
    context.out << node.name << '\t' << node.host << '\t' << node.port << '\t'
                << cores_text(node.cores) << '\t' << (local ? "local" : "remote") << '\n';
  }
}

void add_config_nodes_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<NodesOptions>();
  CLI::App* command = parent.add_subcommand("nodes",
                                            "List the nodes for scripts: name, host, port, cores "
                                            "(0,1 or -) and local or remote, separated by tabs");
  command->add_option("FILE", options->file, "The cluster file")->required();
  command->add_flag("--local", options->local_only, "Only the nodes that belong to this machine");
  command->callback([options, &context] { list_nodes(*options, context); });
}

}  // namespace

void add_config_command(CLI::App& parent, CommandContext& context) {
  CLI::App* command = parent.add_subcommand("config", "Look into a cluster file");
  command->require_subcommand(1);
  add_config_check_command(*command, context);
  add_config_keys_command(*command, context);
  add_config_nodes_command(*command, context);
}

}  // namespace dpwa::cli
