#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/pull/pull_group.h"
#include "bench/worker/group.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {

struct PullOptions {
  Topology topology;
  NodeSettings settings;
  bool blend = false;
  bool with_raw = false;
  bool with_checked_raw = false;
};

struct PullMeasured {
  Measurement measurement;
  std::vector<Series> series;              // dpwa, then raw and checked_raw when they ran in turn
  std::vector<std::vector<Json>> reports;  // of the nodes of each
  std::uint32_t chunk_bytes = 0;
  std::optional<double> bytes_beyond;  // memory_beyond_buffers
};

std::string title_of(const PullOptions& options);  // "pull 100 MB, 2 nodes, tcp, ..."

// The path that the parameters took, by what the kernel counted on TCP connections: "tcp" or
// "same_host".
std::string transport_in_force(double tcp_bytes, std::uint64_t parameter_bytes);

// The JSON document of docs/PERFORMANCE.md.
Json pull_document(const PullOptions& options, const PullMeasured& measured);
void print_pull(const Json& document, std::ostream& out);

}  // namespace dpwa::bench
