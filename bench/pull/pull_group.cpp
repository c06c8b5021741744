#include "bench/pull/pull_group.h"

#include <algorithm>
#include <fstream>

#include "dpwa/config/config.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/security/key_file.h"

namespace dpwa::bench {
namespace {

// "FILE:LINE: problem" -> "problem": nobody has seen the file.
std::string without_place(const std::string& message, const std::string& file) {
  if (!message.starts_with(file)) return message;
  const auto end = message.find(": ", file.size());
  return end == std::string::npos ? message : message.substr(end + 2);
}

// What a node mapped of its peers stays mapped to the end: it is part of the peak.
double own_peak_kib(const Json& report) {
  return report.at("peak_rss_kib").get<double>() - report.at("peers_mapped_kib").get<double>();
}

}  // namespace

std::string node_name(std::size_t index) {
  return "w" + std::to_string(index + 1);
}

std::string cluster_file_text(const NodeSettings& settings,
                              const std::vector<std::uint16_t>& ports) {
  std::string text = "cluster: bench\nnodes:\n";
  for (std::size_t i = 0; i < ports.size(); ++i) {
    text += "  - {name: " + node_name(i) + ", host: 127.0.0.1, port: " + std::to_string(ports[i]) +
            "}\n";
  }
  text += std::string("gossip: {timeout_ms: 60s, max_frozen_ms: 0, daemon: ") +
          (settings.daemon ? "true" : "false") + "}\n";
  text += "transport:\n";
  text +=
      std::string("  same_host: ") + (settings.transport == "same_host" ? "auto" : "off") + "\n";
  text += "  max_requests_per_second: 0\n";  // it asks as fast as it can
  text += "  encoding: " + settings.encoding + "\n";
  text += std::string("  checksum: ") + (settings.checksum ? "on" : "off") + "\n";
  if (settings.chunk_bytes != 0)
    text += "  chunk_bytes: " + std::to_string(settings.chunk_bytes) + "\n";
  text += "security:\n  mode: " + settings.security + "\n";
  if (!settings.key_file.empty()) text += "  key_file: \"" + settings.key_file + "\"\n";
  text += "log: {level: warn}\n";
  return text;
}

ClusterFile::ClusterFile(const NodeSettings& settings, const std::vector<std::uint16_t>& ports) {
  try {
    NodeSettings complete = settings;
    if (settings.security == "psk" && settings.key_file.empty()) {
      complete.key_file = folder_.path() + "/cluster.key";
      create_private_file(complete.key_file, key_file_text({new_key()}));
    }
    std::ofstream(path()) << cluster_file_text(complete, ports);
    chunk_bytes_ = load_config(path(), node_name(0)).transport.chunk_bytes;
  } catch (const ConfigError& error) {
    throw ConfigError(without_place(error.what(), path()));
  }
}

PullGroup::PullGroup(const Topology& topology, const NodeSettings& settings, bool blend) {
  const auto ports = net::free_ports(topology.nodes());
  file_ = std::make_unique<ClusterFile>(settings, ports);
  std::vector<NodeJob> jobs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Json tensors = Json::array({Json::array({"x", topology.bytes / 4})});
    Json job = {{"kind", "pull"},     {"config", file_->path()}, {"name", node_name(i)},
                {"tensors", tensors}, {"blend", blend},          {"peer", nullptr}};
    // A PeerId counts the other nodes of the file in their order.
    if (topology.ping_pong) job["core"] = i;
    if (const auto partner = topology.partner(i))
      job["peer"] = *partner < i ? *partner : *partner - 1;
    jobs.push_back({std::move(job), topology.pulls(i)});
  }
  group_ = std::make_unique<Group>("/proc/self/exe", jobs);
}

std::uint64_t pull_node_buffers(bool blend) {
  return blend ? 5 : 4;
}

double memory_beyond_buffers(const std::vector<Json>& reports, const std::vector<Json>& small,
                             std::uint64_t buffers, std::uint64_t bytes,
                             std::uint32_t chunk_bytes) {
  double most = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const double more = 1024 * (own_peak_kib(reports[i]) - own_peak_kib(small.at(i)));
    most = std::max(most, more - static_cast<double>(buffers * bytes) + chunk_bytes);
  }
  return most;
}

std::unique_ptr<Group> make_raw_group(const Topology& topology, const std::string& mode) {
  const auto ports = net::free_ports(topology.nodes());
  std::vector<NodeJob> jobs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto partner = topology.partner(i);
    Json job = {{"kind", "raw"},  {"mode", mode},    {"bytes", topology.bytes},   {"index", i},
                {"ports", ports}, {"peer", nullptr}, {"pulls", topology.pulls(i)}};
    if (topology.ping_pong) job["core"] = i;
    if (partner) job["peer"] = *partner;
    jobs.push_back({std::move(job), topology.pulls(i)});
  }
  return std::make_unique<Group>("/proc/self/exe", jobs);
}

std::uint64_t raw_group_memory(const Topology& topology, const std::string& mode) {
  const std::uint64_t served = mode == "checked" ? 3 : 1;
  std::uint64_t buffers = 0;
  for (std::size_t i = 0; i < topology.nodes(); ++i)
    buffers += served + (topology.pulls(i) ? 1 : 0);
  return buffers * topology.bytes;
}

}  // namespace dpwa::bench
