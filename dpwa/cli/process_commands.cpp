#include <CLI/App.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/attach/node_service.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/security/security.h"

// The commands that are a process of the cluster until a signal ends them.

namespace dpwa::cli {
namespace {

struct ProcessOptions {
  std::string file;
  std::string name;
  std::vector<std::string> join;
  std::filesystem::path run_dir;
};

void begin_process() {
  forbid_core_dumps();
  stop_signal::install();
  stop_signal::defer(true);
}

void keep_events(const ProcessOptions& options, const Config& config) {
  if (options.run_dir.empty()) return;
  std::filesystem::create_directories(options.run_dir);
  write_events_to(options.run_dir / (config.self + ".events.jsonl"));
}

void run_node(const ProcessOptions& options, CommandContext& context) {
  begin_process();
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
  keep_events(options, config);
  attach::NodeService service(
      config, [&options] { return reload_config(options.file, options.name, options.join); },
      {[] { return stop_signal::received() != 0; }, [] { return stop_signal::take_reload(); },
       stop_signal::defer});
  service.run();
  context.exit_code = stop_signal::exit_code();
}

void run_kvserver(const ProcessOptions& options, CommandContext& context) {
  constexpr auto look_every = std::chrono::milliseconds(50);
  begin_process();
  const Config config = load_server_config(options.file, options.name);
  require_servers(config);
  kvserver::StoreServer server(config, config.self);
  open_log(config).use();
  keep_events(options, config);
  server.start(config.kvstore.start_wait);
  log_event(EventKind::started, LogLevel::info, "kvserver",
            "listens on port " + std::to_string(server.port()));
  while (stop_signal::received() == 0 && server.failure() == 0) {
    std::this_thread::sleep_for(look_every);
    if (!stop_signal::take_reload()) continue;
    // The one thing of the file that a running server takes up.
    const std::optional<std::string> problem = server.reload_security();
    log(problem ? LogLevel::error : LogLevel::info, "kvserver",
        problem ? "not reloaded: " + *problem : "reloaded: the files of the security section");
  }
  server.stop();
  log_event(EventKind::ended, LogLevel::info, "kvserver", "ended");
  const int failure = server.failure();
  context.exit_code = failure != 0 ? failure : stop_signal::exit_code();
}

}  // namespace

void add_process_commands(CLI::App& parent, CommandContext& context) {
  const auto options = std::make_shared<ProcessOptions>();
  CLI::App* node = parent.add_subcommand(
      "node",
      "Run the network side of a node for training processes that come and go (gossip: {daemon: "
      "true}), until SIGTERM or SIGINT; SIGHUP makes it read the file again");
  CLI::App* kvserver = parent.add_subcommand(
      "kvserver",
      "Run one server of backend kvstore until SIGTERM or SIGINT; SIGHUP makes it read its keys "
      "and certificates again");
  for (CLI::App* command : {node, kvserver}) {
    command->add_option("--config", options->file, "The cluster file")
        ->required()
        ->type_name("FILE");
    command->add_option("--run-dir", options->run_dir, "Append events to NAME.events.jsonl in here")
        ->type_name("DIR");
  }
  node->add_option("--name", options->name, "The node (default: DPWA_NAME)");
  node->add_option("--join", options->join,
                   "HOST:PORT of a running node to join by; may be given several times");
  kvserver->add_option("--name", options->name,
                       "The server, one of kvstore.servers (default: DPWA_NAME)");
  node->callback([options, &context] { run_node(*options, context); });
  kvserver->callback([options, &context] { run_kvserver(*options, context); });
}

}  // namespace dpwa::cli
