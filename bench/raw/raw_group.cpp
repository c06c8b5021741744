#include "bench/raw/raw_group.h"

#include "dpwa/net/free_ports.h"

namespace dpwa::bench {

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
