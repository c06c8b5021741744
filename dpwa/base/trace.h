#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa {

// What a span of time is of. Those of a trainer and of pulls lie within one another, the others may
// overlap.
enum class Track : std::uint8_t { trainer, pull, group, store };

struct TracedSpan {
  static constexpr std::size_t most_about = 30;

  Track track = Track::trainer;
  std::array<char, most_about + 1> about{};  // a peer or a key, as much as fits
  const char* name = "";                     // a literal: "pull"
  TimePoint begin{};
  Duration time{};
};

// What the threads of a process do, for a time that somebody has asked for: spans in a ring, of
// which the latest stay. Has no memory, and costs a load, while nobody asks. Any thread.
class Trace {
 public:
  static constexpr std::size_t most_spans = std::size_t{1} << 15;
  static constexpr Duration longest = std::chrono::minutes(1);

  // Records anew, for `time`, `longest` at most.
  void record(TimePoint now, Duration time);
  bool is_on() const { return until_.load(std::memory_order_relaxed) != 0; }
  // Keeps a span that begins while it records.
  void add(const TracedSpan& span);

  // Spans in the order of their ends.
  struct Page {
    std::vector<TracedSpan> spans;
    std::uint64_t next = 0;    // the number of the first one of the next page
    std::uint64_t missed = 0;  // by now, as the ring was full
    bool is_last = true;
  };
  // From number `from` on, `most` at most. The memory is given up with the last page, once the time
  // is over.
  Page page(std::uint64_t from, std::size_t most, TimePoint now);

 private:
  std::atomic<Duration::rep> until_{0};  // of the steady clock; 0: off
  Mutex mutex_;
  std::vector<TracedSpan> ring_ DPWA_GUARDED_BY(mutex_);
  std::uint64_t added_ DPWA_GUARDED_BY(mutex_) = 0;
};

// Of this process.
Trace& own_trace();

// A span of the trace of this process, from here to the end of the scope.
class TraceScope {
 public:
  TraceScope(Track track, const char* name, std::string_view about = {}) {
    if (!own_trace().is_on()) return;
    span_.track = track;
    span_.name = name;
    span_.about[about.copy(span_.about.data(), TracedSpan::most_about)] = '\0';
    span_.begin = std::chrono::steady_clock::now();
  }
  ~TraceScope() {
    if (span_.begin == TimePoint{}) return;
    span_.time = std::chrono::steady_clock::now() - span_.begin;
    own_trace().add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TracedSpan span_;  // without a beginning: not recorded
};

}  // namespace dpwa
