#pragma once

#include <string>
#include <vector>

#include "dpwa/observe/cluster_query.h"

namespace dpwa::observe {

// What has happened to a process between two looks at a cluster, in words.
struct Change {
  std::string process;
  std::string words;  // such as "does not answer: Connection refused"
  bool is_bad = false;
};

// In the order of `now`: processes that joined, stopped or began to answer, were started again, or
// are seen otherwise by the others; then those that left. The rest they tell themselves, as events.
// Nothing when `before` is empty. Pure.
std::vector<Change> changes(const ClusterStatus& before, const ClusterStatus& now);

}  // namespace dpwa::observe
