#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/log/log.h"
#include "dpwa/security/security.h"

namespace dpwa::cli {
namespace {

struct KvserverOptions {
  std::string file;
  std::string name;
};

void run_kvserver(const KvserverOptions& options, CommandContext& context) {
  constexpr auto look_every = std::chrono::milliseconds(50);
  forbid_core_dumps();
  stop_signal::install();
  stop_signal::defer(true);
  const Config config = load_server_config(options.file, options.name);
  require_servers(config);
  kvserver::StoreServer server(config, config.self);
  open_log(config).use();
  server.start(config.kvstore.start_wait);
  log(LogLevel::info, "kvserver", "listens on port " + std::to_string(server.port()));
  while (stop_signal::received() == 0 && server.failure() == 0) {
    std::this_thread::sleep_for(look_every);
    if (!stop_signal::take_reload()) continue;
    // The one thing of the file that a running server takes up.
    const std::optional<std::string> problem = server.reload_security();
    log(problem ? LogLevel::error : LogLevel::info, "kvserver",
        problem ? "not reloaded: " + *problem : "reloaded: the files of the security section");
  }
  server.stop();
  log(LogLevel::info, "kvserver", "ended");
  const int failure = server.failure();
  context.exit_code = failure != 0 ? failure : 128 + stop_signal::received();
}

}  // namespace

void add_kvserver_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<KvserverOptions>();
  CLI::App* command = parent.add_subcommand("kvserver",
                                            "Run one server of backend kvstore until SIGTERM or "
                                            "SIGINT; SIGHUP makes it read its keys and "
                                            "certificates again");
  command->add_option("--config", options->file, "The cluster file")->required()->type_name("FILE");
  command->add_option("--name", options->name,
                      "The server, one of kvstore.servers (default: DPWA_NAME)");
  command->callback([options, &context] { run_kvserver(*options, context); });
}

}  // namespace dpwa::cli
