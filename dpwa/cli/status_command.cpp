#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/asking_options.h"
#include "dpwa/cli/node_status.h"
#include "dpwa/config/config.h"
#include "dpwa/observe/cluster_query.h"

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

void print_tables(const ClusterStatus& found, Backend of_file, std::ostream& out) {
  print_status_table(found.nodes, out, of_file);
  if (found.servers.empty()) return;
  out << '\n';
  print_server_table(found.servers, out);
}

void show_once(const Asking& asking, const StatusOptions& options, CommandContext& context) {
  const ClusterStatus found = ask_all(asking);
  if (options.json) {
    const Json document = observe::to_json(asking.config, found);
    context.out << document.dump(2, ' ', /*ensure_ascii=*/true) << '\n';  // control characters too
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
    const ClusterStatus found = ask_all(asking);
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

void show_status(const StatusOptions& options, CommandContext& context) {
  const Asking asking = observe::make_asking(options.file, options.name,
                                             std::chrono::milliseconds(options.timeout_ms));
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
  add_asking_options(*command, options->file, options->name);
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
