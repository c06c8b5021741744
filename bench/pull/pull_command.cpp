#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <ostream>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/pull/pull_group.h"
#include "bench/pull/pull_report.h"
#include "bench/quantity.h"
#include "bench/raw/raw_group.h"

namespace dpwa::bench {
namespace {

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
  require_memory(topology.nodes() * buffers * topology.bytes +
                 (options.with_raw ? raw_group_memory(topology) : 0));
  const std::string title = title_of(options);
  context.err << title << std::endl;

  std::vector<Json> small;
  if (topology.bytes >= least_bytes_for_memory) small = reports_of_small_model(topology, options);
  PullGroup nodes(topology, options.settings, options.blend);
  const auto raw = options.with_raw ? make_raw_group(topology, "in_place") : nullptr;
  PullMeasured measured;
  measured.series.push_back({"dpwa", &nodes.group(), {}});
  if (raw) measured.series.push_back({"raw", raw.get(), {}});
  measured.measurement = measure(measured.series, topology.seconds, context.err);
  measured.reports = nodes.group().reports();
  if (raw) measured.raw_reports = raw->reports();
  measured.chunk_bytes = nodes.chunk_bytes();
  if (!small.empty()) {
    measured.bytes_beyond = memory_beyond_buffers(measured.reports, small, buffers, topology.bytes,
                                                  nodes.chunk_bytes());
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
  command->callback([options, &context] { run_pull(*options, context); });
}

}  // namespace dpwa::bench
