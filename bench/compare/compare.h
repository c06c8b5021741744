#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/statistics.h"

namespace dpwa::bench {

using Json = nlohmann::ordered_json;

// A figure of a document of dpwa-bench, or of the bench.json of scripts/bench.sh.
struct Figure {
  std::string label;  // what was measured and how, the same in both documents
  double value = 0;
  std::optional<Range> range;  // of the windows, when they were recorded
  bool more_is_better = false;
};

// Every figure of a document, however deep. A measurement is known by its settings (kind, bytes,
// nodes, ...), so that documents may hold others besides.
std::vector<Figure> figures_in(const Json& document);

struct Comparison {
  std::string label;
  double before = 0;
  double after = 0;
  double ratio = 0;  // above 1: better, below 1: worse
  bool worse = false;
};

// The figures that both have. Worse: the ratio is below `threshold` and the ranges of the windows,
// where both are known, do not overlap.
std::vector<Comparison> compare(const Json& before, const Json& after, double threshold);

}  // namespace dpwa::bench
