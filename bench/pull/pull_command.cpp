#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/pull/pull_group.h"
#include "bench/pull/pull_report.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {
namespace {

struct RawOptions {
  Topology topology;
  std::string mode = "in_place";
};

std::string mode_of(const Topology& topology, const std::string& otherwise) {
  return topology.ping_pong ? "ping_pong" : otherwise;
}

void run_raw(RawOptions options, CommandContext& context) {
  Topology& topology = options.topology;
  topology.bytes = std::max<std::uint64_t>(topology.bytes / 4 * 4, 4);
  const std::string mode = mode_of(topology, options.mode);
  require_memory(raw_group_memory(topology, options.mode));
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

constexpr std::uint64_t small_model_bytes = 200;
constexpr std::uint64_t least_bytes_for_memory = 1'000'000;

// Peaks of the same nodes with next to no parameters.
std::vector<Json> reports_of_small_model(Topology topology, const PullOptions& options) {
  topology.bytes = small_model_bytes;
  PullGroup small(topology, options.settings, options.blend);
  small.group().run(0.02, false);
  return small.group().reports();
}

void run_pull(PullOptions options, CommandContext& context) {
  Topology& topology = options.topology;
  topology.bytes = std::max<std::uint64_t>(topology.bytes / 4 * 4, 4);
  const std::uint64_t buffers = pull_node_buffers(options.blend);
  std::vector<std::pair<std::string, std::string>> others;  // name and mode of bare sockets beside
  if (options.with_raw) others.emplace_back("raw", mode_of(topology, "in_place"));
  if (options.with_checked_raw) others.emplace_back("checked_raw", "checked");
  std::uint64_t memory = topology.nodes() * buffers * topology.bytes;
  for (const auto& [name, mode] : others) memory += raw_group_memory(topology, mode);
  require_memory(memory);
  const std::string title = title_of(options);
  context.err << title << std::endl;

  std::vector<Json> small;
  if (topology.bytes >= least_bytes_for_memory) small = reports_of_small_model(topology, options);
  PullGroup nodes(topology, options.settings, options.blend);
  std::vector<std::unique_ptr<Group>> groups;
  PullMeasured measured;
  measured.series.push_back({"dpwa", &nodes.group(), {}});
  for (const auto& [name, mode] : others) {
    groups.push_back(make_raw_group(topology, mode));
    measured.series.push_back({name, groups.back().get(), {}});
  }
  measured.measurement = measure(measured.series, topology.seconds, context.err);
  for (const Series& one : measured.series) measured.reports.push_back(one.group->reports());
  measured.chunk_bytes = nodes.chunk_bytes();
  if (!small.empty()) {
    measured.bytes_beyond = memory_beyond_buffers(measured.reports.front(), small, buffers,
                                                  topology.bytes, nodes.chunk_bytes());
  }
  const Json document = pull_document(options, measured);
  warn_when_noisy(measured.measurement.noise, context.err);
  if (topology.json) {
    context.out << document.dump(2) << '\n';
  } else {
    context.out << title << '\n';
    print_pull(document, context.out);
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
                   "in_place: blend while it arrives; landing: leave a difference, as dpwa does; "
                   "checked: landing, of a new version each time, with checksums")
      ->check(CLI::IsMember({"in_place", "landing", "checked"}))
      ->capture_default_str();
  command->add_flag("--ping-pong", options->topology.ping_pong,
                    "Only request and answer, for small sizes: in a thread beside the one that "
                    "waits for it, each node on a core of its own");
  command->callback([options, &context] { run_raw(*options, context); });
}

void add_pull_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<PullOptions>();
  CLI::App* command = parent.add_subcommand(
      "pull", "Node processes on loopback that pull through the code that training uses");
  add_topology_options(*command, options->topology);
  NodeSettings& settings = options->settings;
  command->add_option("--transport", settings.transport, "How parameters travel")
      ->check(CLI::IsMember({"tcp", "same_host"}))
      ->capture_default_str();
  command->add_option("--encoding", settings.encoding, "transport.encoding of the nodes")
      ->capture_default_str();
  command->add_option("--security", settings.security, "security.mode of the nodes")
      ->capture_default_str();
  command->add_option("--key-file", settings.key_file,
                      "The key file of psk (default: a key of this run)");
  command
      ->add_option_function<std::string>(
          "--checksum",
          [options](const std::string& text) { options->settings.checksum = text == "on"; },
          "transport.checksum of the nodes")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
  add_size_option(*command, "--chunk-bytes", settings.chunk_bytes,
                  "transport.chunk_bytes of the nodes")
      ->default_str("theirs");
  command->add_flag("--blend", options->blend, "Blend what has landed as a part of every pull");
  command->add_flag("--with-raw", options->with_raw,
                    "Also run `raw`, window by window in turn, and give the ratio");
  CLI::Option* checked =
      command->add_flag("--with-checked-raw", options->with_checked_raw,
                        "Likewise `raw --mode checked`, whose limit is the nearer one");
  command
      ->add_flag("--ping-pong", options->topology.ping_pong,
                 "For the latency of small sizes: each node on a core of its own, and `raw` "
                 "with as many threads as dpwa")
      ->excludes(checked);
  command->callback([options, &context] { run_pull(*options, context); });
}

}  // namespace dpwa::bench
