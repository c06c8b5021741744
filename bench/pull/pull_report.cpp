#include "bench/pull/pull_report.h"

#include <algorithm>
#include <ostream>

#include "bench/measure/machine.h"
#include "bench/pull/pull_group.h"
#include "bench/quantity.h"

namespace dpwa::bench {
namespace {

constexpr double mib = 1024.0 * 1024.0;
// int8 moves a quarter of the float32 bytes, and a handover of memory next to none.
constexpr double least_tcp_share = 0.2;

// Window by window: both had the same machine.
Range ratios(const Series& ours, const Series& raw, double GroupWindow::*value) {
  std::vector<double> values;
  for (std::size_t i = 0; i < ours.windows.size(); ++i)
    values.push_back(ours.windows[i].*value / raw.windows[i].*value);
  return range_of(values);
}

double tcp_bytes(const Series& series) {
  double sum = 0;
  for (const GroupWindow& window : series.windows) sum += window.tcp_bytes;
  return sum;
}

std::uint64_t parameter_bytes(const Series& series) {
  std::uint64_t sum = 0;
  for (const GroupWindow& window : series.windows) sum += window.bytes;
  return sum;
}

Json settings_of(const PullOptions& options, const PullMeasured& measured) {
  Json settings = machine_settings();
  settings["congestion_control"] = measured.reports.front().front().at("congestion_control");
  settings["chunk_bytes"] = measured.chunk_bytes;
  settings["requested_transport"] = options.settings.transport;
  const Series& ours = measured.series.front();
  double pulls = 0;
  for (const GroupWindow& window : ours.windows) pulls += static_cast<double>(window.pulls);
  settings["tcp_bytes_per_pull"] = pulls == 0 ? 0 : tcp_bytes(ours) / pulls;
  settings["bytes_per_pull"] = pulls == 0 ? 0 : static_cast<double>(parameter_bytes(ours)) / pulls;
  double huge = 1e300;
  const double buffers = static_cast<double>(pull_node_buffers(options.blend)) *
                         static_cast<double>(options.topology.bytes);
  for (const Json& report : measured.reports.front())
    huge = std::min(huge, 1024 * report.at("huge_kib").get<double>() / buffers);
  settings["huge_pages"] = std::min(huge, 1.0);
  return settings;
}

}  // namespace

std::string title_of(const PullOptions& options) {
  const NodeSettings& settings = options.settings;
  const Topology& topology = options.topology;
  return "pull " + size_text(topology.bytes) + ", " + std::to_string(topology.nodes()) +
         (topology.all_pull != 0 ? " nodes all pulling, " : " nodes, ") + settings.transport +
         ", " + settings.encoding + ", checksum " + (settings.checksum ? "on" : "off") + ", " +
         settings.security + (options.blend ? ", blending" : "") +
         (topology.ping_pong ? ", ping-pong" : "");
}

std::string transport_in_force(double tcp_bytes, std::uint64_t parameter_bytes) {
  return tcp_bytes >= least_tcp_share * static_cast<double>(parameter_bytes) ? "tcp" : "same_host";
}

Json pull_document(const PullOptions& options, const PullMeasured& measured) {
  const Series& ours = measured.series.front();
  const std::string transport = transport_in_force(tcp_bytes(ours), parameter_bytes(ours));
  const Topology& topology = options.topology;
  Json document = {{"kind", "pull"},
                   {"bytes", topology.bytes},
                   {"nodes", topology.nodes()},
                   {"pulling_nodes", topology.all_pull != 0 ? topology.nodes() : topology.pairs},
                   {"transport", transport},
                   {"encoding", options.settings.encoding},
                   {"security", options.settings.security},
                   {"checksum", options.settings.checksum ? "on" : "off"},
                   {"blend", options.blend},
                   {"seconds", measured.measurement.seconds}};
  document.update(figures_of(ours, measured.reports.front()));
  document["memory_beyond_parameters_mib"] =
      measured.bytes_beyond ? Json(*measured.bytes_beyond / mib) : Json(nullptr);
  document["windows"] = windows_of(ours);
  for (std::size_t i = 1; i < measured.series.size(); ++i) {
    const Series& other = measured.series[i];
    document[other.name] = figures_of(other, measured.reports.at(i));
    document[other.name]["windows"] = windows_of(other);
    document["ratio_to_" + other.name] = json_of(ratios(ours, other, &GroupWindow::gb_per_s));
    document["latency_ratio_to_" + other.name] =
        json_of(ratios(ours, other, &GroupWindow::latency_us));
  }
  document["ping_pong"] = topology.ping_pong;
  document["noise"] = json_of(measured.measurement.noise);
  document["settings"] = settings_of(options, measured);
  return document;
}

void print_pull(const Json& document, std::ostream& out) {
  if (document.at("transport") != document.at("settings").at("requested_transport"))
    out << "  in force          " << document.at("transport").get<std::string>() << '\n';
  print_figures(document, out);
  if (const Json& beyond = document.at("memory_beyond_parameters_mib"); !beyond.is_null())
    out << "  beyond buffers    " << number_text(beyond, 2) << " MiB a node\n";
  const auto range = [&](const std::string& key) {
    const Json& ratio = document.at(key);
    return number_text(ratio.at("median"), 3) + " (" + number_text(ratio.at("min"), 3) + " to " +
           number_text(ratio.at("max"), 3) + ")";
  };
  for (const std::string name : {"raw", "checked_raw"}) {
    if (!document.contains(name)) continue;
    out << (name == "raw" ? "bare sockets" : "bare sockets that check and land new versions")
        << ", in the same windows\n";
    print_figures(document.at(name), out);
    out << "of their throughput " << range("ratio_to_" + name) << ", of their latency "
        << range("latency_ratio_to_" + name) << '\n';
  }
}

}  // namespace dpwa::bench
