#include "bench/pull/pull_group.h"

#include <algorithm>

#include "dpwa/net/free_ports.h"

namespace dpwa::bench {
namespace {

// What a node mapped of its peers stays mapped to the end: it is part of the peak.
double own_peak_kib(const Json& report) {
  return report.at("peak_rss_kib").get<double>() - report.at("peers_mapped_kib").get<double>();
}

}  // namespace

PullGroup::PullGroup(const Topology& topology, const NodeSettings& settings, bool blend) {
  const auto ports = net::free_ports(topology.nodes());
  file_ = std::make_unique<ClusterFile>(settings, ports);
  std::vector<NodeJob> jobs;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Json tensors = Json::array({Json::array({"x", topology.bytes / 4})});
    Json job = {{"kind", "pull"},     {"config", file_->path()}, {"name", node_name(i)},
                {"tensors", tensors}, {"blend", blend},          {"peer", nullptr}};
    // A PeerId counts the other nodes of the file in their order.
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
    if (partner) job["peer"] = *partner;
    jobs.push_back({std::move(job), topology.pulls(i)});
  }
  return std::make_unique<Group>("/proc/self/exe", jobs);
}

std::uint64_t raw_group_memory(const Topology& topology) {
  std::uint64_t buffers = 0;
  for (std::size_t i = 0; i < topology.nodes(); ++i) buffers += topology.pulls(i) ? 2 : 1;
  return buffers * topology.bytes;
}

}  // namespace dpwa::bench
