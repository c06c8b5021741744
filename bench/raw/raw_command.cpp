#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <ostream>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/raw/raw_group.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {
namespace {

struct RawOptions {
  Topology topology;
  std::string mode = "in_place";
  bool ping_pong = false;
};

void run_raw(RawOptions options, CommandContext& context) {
  Topology& topology = options.topology;
  topology.bytes = std::max<std::uint64_t>(topology.bytes / 4 * 4, 4);
  const std::string mode = options.ping_pong ? "ping_pong" : options.mode;
  require_memory(raw_group_memory(topology));
  const std::string title = "raw " + size_text(topology.bytes) + ", " +
                            std::to_string(topology.nodes()) + " nodes, " + mode;
  context.err << title << std::endl;
  const auto group = make_raw_group(topology, mode);
  std::vector<Series> series{{"raw", group.get(), {}}};
  const Measurement measured = measure(series, topology.seconds, context.err);
  const auto reports = group->reports();

  Json document = {{"kind", "raw"},
                   {"bytes", topology.bytes},
                   {"nodes", topology.nodes()},
                   {"pulling_nodes", topology.all_pull != 0 ? topology.nodes() : topology.pairs},
                   {"mode", mode},
                   {"seconds", measured.seconds}};
  document.update(figures_of(series[0], reports));
  document["windows"] = windows_of(series[0]);
  document["noise"] = json_of(measured.noise);
  document["settings"] = machine_settings();
  document["settings"]["congestion_control"] = reports.front().at("congestion_control");
  warn_when_noisy(measured.noise, context.err);
  if (topology.json) {
    context.out << document.dump(2) << '\n';
  } else {
    context.out << title << '\n';
    print_figures(document, context.out);
  }
}

}  // namespace

void add_raw_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<RawOptions>();
  CLI::App* command =
      parent.add_subcommand("raw", "The same pull by bare sockets: the limit to compare with");
  add_topology_options(*command, options->topology);
  command
      ->add_option("--mode", options->mode,
                   "in_place: blend while it arrives; landing: leave a difference, as dpwa does")
      ->check(CLI::IsMember({"in_place", "landing"}))
      ->capture_default_str();
  command->add_flag("--ping-pong", options->ping_pong, "Only request and answer, for small sizes");
  command->callback([options, &context] { run_raw(*options, context); });
}

}  // namespace dpwa::bench
