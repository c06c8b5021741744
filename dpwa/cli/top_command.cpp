#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/asking_options.h"
#include "dpwa/cli/top_table.h"
#include "dpwa/observe/cluster_query.h"
#include "dpwa/observe/observation_of.h"

namespace dpwa::cli {
namespace {

using namespace observe;
using SteadyClock = std::chrono::steady_clock;

struct TopOptions {
  std::string file;
  std::string name;
  unsigned seconds = 2;
  unsigned count = 0;  // of tables; 0 = on a terminal without end, else one
  unsigned timeout_ms = 1000;
};

TableSize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

// Until the count is reached, a signal ends the process, or the reader goes away. A new size of the
// terminal counts from the next table on.
void show(const TopOptions& options, CommandContext& context) {
  const Asking asking =
      make_asking(options.file, options.name, std::chrono::milliseconds(options.timeout_ms));
  stop_signal::install();
  constexpr std::size_t observed = 4;  // so that an evaluation is told from a slow step
  const unsigned count = options.count == 0 && !context.terminal ? 1 : options.count;
  std::vector<diagnosis::Observation> observations;
  const auto begin = SteadyClock::now();
  unsigned shown = 0;
  for (unsigned i = 0; context.out && (count == 0 || shown < count); ++i) {
    // The first table comes after a second.
    if (i > 0) std::this_thread::sleep_for(std::chrono::seconds(i == 1 ? 1 : options.seconds));
    const double at_s = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    const ClusterStatus found = ask_all(asking);
    observations.push_back(observation_of(found, at_s));
    if (observations.size() > observed) observations.erase(observations.begin());
    if (observations.size() < 2) continue;
    const TableSize size = context.terminal ? size_of_terminal() : TableSize{};
    if (context.terminal) context.out << "\x1b[H\x1b[2J";  // home, clear
    if (!context.terminal && shown > 0) context.out << '\n';
    for (const std::string& line : top_lines(found, observations, size))
      context.out << line << '\n';
    context.out.flush();
    ++shown;
  }
}

}  // namespace

void add_top_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = parent.add_subcommand(
      "top", "Show how fast every node steps and where its time goes, with the latest events");
  command->footer("dpwa status --watch shows the counters instead. Ctrl-C ends it.");
  add_asking_options(*command, options->file, options->name);
  command->add_option("--seconds", options->seconds, "The time between two tables")
      ->check(CLI::Range(1U, 3600U))
      ->capture_default_str();
  command->add_option("--count", options->count,
                      "How many tables to print (default: on a terminal without end, else one)");
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each node")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { show(*options, context); });
}

}  // namespace dpwa::cli
