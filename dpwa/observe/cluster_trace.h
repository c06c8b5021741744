#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "dpwa/observe/cluster_query.h"

namespace dpwa::observe {

// What the threads of one process did for some seconds (base/trace.h), by its own clock.
struct ProcessTrace {
  struct Span {
    std::string track;
    std::string name;
    std::string about;
    std::int64_t begin_us = 0;  // since 1970
    std::int64_t end_us = 0;
  };

  std::string name;
  std::vector<Span> spans;
  std::uint64_t missed = 0;     // earlier ones that its ring had no room for
  std::int64_t ahead_us = 0;    // its clock of that of this process
  std::int64_t within_us = -1;  // half a round trip: the bound of the error; below 0: no answer
  std::string problem;          // why it is not there, or not whole; empty: it is
};

// Takes up the answer to a TRACE_REQUEST, which is data from the network. Returns the number of the
// first span of the next one; 0: there is none. Pure.
std::uint64_t take_page(const StatusAnswer& answer, ProcessTrace& trace);

// In the Trace Event Format, a process for each. Times are by the clock of this process, from the
// moment "baseTimeNanoseconds" on, as those of torch's profiler (2.13). Pure.
Json to_chrome(std::span<const ProcessTrace> traces);

// All processes of the cluster that answer record for `time`, meanwhile this function waits.
std::vector<ProcessTrace> record_traces(const Asking& asking, std::chrono::milliseconds time);

// NODE.trace.json for each process with spans, and trace.json with all. Makes the folder. Throws
// std::system_error with the file.
void write_traces(const std::filesystem::path& folder, std::span<const ProcessTrace> traces);

}  // namespace dpwa::observe
