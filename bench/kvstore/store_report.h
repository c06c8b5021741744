#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/kvstore/store_group.h"
#include "bench/measure/statistics.h"
#include "bench/worker/measurement.h"

namespace dpwa::bench {

// Another program that did the same, in windows that took turns with those of the store.
struct StepPeer {
  std::string key;                // in the document: "gloo", "ps_lite"
  std::string absent;             // why there is none; empty: there is
  std::string name;               // with its version
  std::vector<double> window_us;  // median of a step, by window
  std::vector<double> times_us;   // of all windows
  double cpu_s = 0;               // of all windows
};

struct StoreMeasured {
  Series store;
  std::vector<Json> reports;  // of its processes
  std::vector<Series> raw;    // one of bare sockets, or none
  std::vector<Json> raw_reports;
  std::vector<StepPeer> peers;
  Noise noise;
};

// Such as "kvstore 100 MB, 4 workers, 2 servers, dist_sync, tcp, momentum".
std::string title_of(const StoreSettings& settings);
// The document of docs/PERFORMANCE.md. A "pull" of it is a push and the pull of the value after it;
// gb_per_s and cpu_s_per_gb count the bytes of both.
Json store_document(const StoreSettings& settings, const StoreMeasured& measured);
void print_store(const Json& document, std::ostream& out);

}  // namespace dpwa::bench
