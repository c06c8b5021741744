#include <CLI/App.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/commands.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/config/config.h"

namespace dpwa::cli {
namespace {

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

}  // namespace

void add_config_nodes_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<NodesOptions>();
  CLI::App* command = parent.add_subcommand("nodes",
                                            "List the nodes for scripts: name, host, port, cores "
                                            "(0,1 or -) and local or remote, separated by tabs");
  command->add_option("FILE", options->file, "The cluster file")->required();
  command->add_flag("--local", options->local_only, "Only the nodes that belong to this machine");
  command->callback([options, &context] { list_nodes(*options, context); });
}

}  // namespace dpwa::cli
