#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dpwa/diagnosis/observation.h"
#include "dpwa/observe/cluster_query.h"

namespace dpwa::cli {

struct TableSize {
  std::size_t columns = 80;
  std::size_t rows = 0;  // 0: not limited
};

// What dpwa top shows of the last of at least two observations: a row for each process, the causes
// that dpwa why finds, and the latest events, as far as there are rows. No line is longer than
// there are columns where the rows are limited. Pure.
std::vector<std::string> top_lines(const observe::ClusterStatus& found,
                                   std::span<const diagnosis::Observation> observations,
                                   const TableSize& size);

}  // namespace dpwa::cli
