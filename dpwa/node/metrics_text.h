#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace dpwa {

// A process whose metrics are wanted.
struct Measured {
  std::string name;
  const nlohmann::ordered_json& status;  // its status document; no object: it did not answer
};

// Metrics in the text format of Prometheus (0.0.4), a family for each row of the table in
// metrics_text.cpp: base units, `_total` for counters, and the label `node`. No label has a value
// for each pair of nodes, so a cluster of n nodes has O(n) series. What a document does not have,
// or has as null, gives no sample. Pure.
std::string metrics_text(std::span<const Measured> processes);

// The Content-Type of that text.
inline constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace dpwa
