#include <CLI/App.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/config/nodes.h"
#include "dpwa/config/resolve.h"
#include "dpwa/config/text.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/observe/cluster_poller.h"
#include "dpwa/observe/routes.h"
#include "dpwa/observe/run_files.h"
#include "dpwa/web/http_server.h"

namespace dpwa::cli {
namespace {

struct DashboardOptions {
  std::vector<std::string> sources;
  std::string listen = "127.0.0.1:8080";
  std::string name;
  std::string token_file;
  bool open = false;
};

// The address to listen at. Beyond loopback the token would travel unencrypted, so it is refused.
NodeEntry listening(const std::string& text) {
  std::optional<NodeEntry> entry = config::parse_endpoint(text);
  if (entry) entry->addresses = resolve_host(entry->host).addresses;
  if (!entry || entry->addresses.empty())
    throw ConfigError("--listen: " + config::shown(text) + " is no address; accepted: HOST:PORT");
  if (!config::is_loopback(entry->addresses.front())) {
    throw ConfigError(
        "--listen: " + config::shown(text) +
        " is not on loopback, and the page has no TLS; accepted: 127.0.0.1:PORT, to be "
        "reached by `ssh -L` or a proxy with TLS");
  }
  return *entry;
}

std::vector<std::filesystem::path> folders_in(const std::vector<std::string>& sources) {
  std::vector<std::filesystem::path> folders;
  for (const std::string& source : sources) {
    if (sources.size() > 1 && !std::filesystem::exists(source))
      throw ConfigError(config::shown(source) + ": there is no such folder");
    if (std::filesystem::is_directory(source)) folders.emplace_back(source);
  }
  if (!folders.empty() && folders.size() != sources.size())
    throw ConfigError(
        "a cluster file beside folders of runs; accepted: one cluster file, or folders");
  if (folders.empty() && sources.size() > 1)
    throw ConfigError("several cluster files; accepted: one cluster file, or folders of runs");
  return folders;
}

std::string token_of(const DashboardOptions& options) {
  if (options.open) return {};
  if (options.token_file.empty()) return web::new_token();
  try {
    return web::read_token(options.token_file);
  } catch (const std::runtime_error& error) {
    throw ConfigError(std::string("--token-file: ") + error.what());
  }
}

void serve(const DashboardOptions& options, CommandContext& context) {
  const NodeEntry at = listening(options.listen);
  const std::vector<std::filesystem::path> folders = folders_in(options.sources);
  const web::Access access{token_of(options), {at.host}};
  observe::Routes routes = observe::page_routes();
  std::optional<observe::ClusterPoller> poller;
  if (folders.empty()) {
    poller.emplace(observe::make_asking(options.sources.front(), options.name,
                                        std::chrono::milliseconds(2000)));
    routes.merge(observe::live_routes(*poller));
  } else {
    observe::read_runs(folders);  // fails now rather than in the browser
    routes.merge(observe::run_routes(folders));
  }
  boost::asio::io_context io(1);
  web::HttpServer server(io, [&](web::Request request) -> boost::asio::awaitable<web::Response> {
    co_return observe::answer(request, access, routes);
  });
  const std::uint16_t port = server.listen(at.addresses.front(), at.port);
  server.serve();
  const bool v6 = at.host.find(':') != std::string::npos;
  context.out << "http://" << (v6 ? '[' + at.host + ']' : at.host) << ':' << port << '/'
              << (access.token.empty() ? "" : "#token=" + access.token) << std::endl;
  stop_signal::install();
  net::run_io(io);  // until a signal ends the process
}

}  // namespace

void add_dashboard_command(CLI::App& parent, CommandContext& context) {
  const auto options = std::make_shared<DashboardOptions>();
  CLI::App* command = parent.add_subcommand(
      "dashboard", "Serve a live page of a cluster, or of finished runs, until Ctrl-C");
  command->footer("The first line that it prints is the address to open in a browser.");
  command->add_option("SOURCE", options->sources, "The cluster file, or folders of runs")
      ->required();
  command->add_option("--listen", options->listen, "The address of the page, on loopback")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command->add_option("--name", options->name,
                      "What {name} in the paths of the security section stands for (default: the "
                      "first node whose files can be read here)");
  CLI::Option* token = command->add_option(
      "--token-file", options->token_file,
      "A file with the token that readers send (default: a new one in the printed address)");
  command->add_flag("--open", options->open, "Readers need no token")->excludes(token);
  command->callback([options, &context] { serve(*options, context); });
}

}  // namespace dpwa::cli
