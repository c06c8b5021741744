#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/attach/node_service.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/security/security.h"

namespace dpwa::cli {
namespace {

struct NodeOptions {
  std::string file;
  std::string name;
  std::vector<std::string> join;
};

void run_node(const NodeOptions& options, CommandContext& context) {
  forbid_core_dumps();
  stop_signal::install();
  stop_signal::defer(true);
  const Config config = load_config(options.file, options.name, options.join);
  if (!config.gossip.daemon) {
    fail_at_key(config, "gossip.daemon",
                "is false, so no trainer would ever attach to a node process; accepted: gossip: "
                "{daemon: true}");
  }
  require_backend(config);
  if (config.backend == Backend::null) {
    fail_at_key(config, "backend",
                "'null' has no network, so no trainer would ever attach to a node process; "
                "accepted: gossip");
  }
  open_log(config).use();
  attach::NodeService service(
      config, [&options] { return reload_config(options.file, options.name, options.join); },
      {[] { return stop_signal::received() != 0; }, [] { return stop_signal::take_reload(); },
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
      "true}), until SIGTERM or SIGINT; SIGHUP makes it read the file again");
  command->add_option("--config", options->file, "The cluster file")->required()->type_name("FILE");
  command->add_option("--name", options->name, "The node (default: DPWA_NAME)");
  command->add_option("--join", options->join,
                      "HOST:PORT of a running node to join by; may be given several times");
  command->callback([options, &context] { run_node(*options, context); });
}

}  // namespace dpwa::cli
