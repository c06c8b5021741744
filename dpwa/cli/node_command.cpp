#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/attach/node_service.h"
#include "dpwa/cli/commands.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/log/log.h"
#include "dpwa/stop_signal.h"

namespace dpwa::cli {
namespace {

struct NodeOptions {
  std::string file;
  std::string name;
  std::vector<std::string> join;
};

void run_node(const NodeOptions& options, CommandContext& context) {
  stop_signal::install();
  stop_signal::defer(true);
  const auto load = [&options] { return load_config(options.file, options.name, options.join); };
  const Config config = load();
  open_log(config).use();
  if (!config.gossip.daemon)
    log(LogLevel::warn, "node",
        "trainers do not attach to a node process unless gossip.daemon is true in " + options.file);
  attach::NodeService service(
      load, {[] { return stop_signal::received() != 0; }, [] { return stop_signal::take_reload(); },
             stop_signal::defer});
  service.run();
  context.exit_code = 128 + stop_signal::received();
}

}  // namespace

void add_node_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<NodeOptions>();
  CLI::App* command = parent.add_subcommand(
      "node",
      "Run the network side of a node for training processes that come and go (gossip: {daemon: "
      "true}), until SIGTERM or SIGINT; SIGHUP reads the file again");
  command->add_option("--config", options->file, "The cluster file")->required();
  command->add_option("--name", options->name, "The node (default: DPWA_NAME)");
  command->add_option("--join", options->join,
                      "HOST:PORT of a running node to join by; may be given several times");
  command->callback([options, &context] { run_node(*options, context); });
}

}  // namespace dpwa::cli
