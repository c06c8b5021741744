#include "dpwa/base/trace.h"

#include <algorithm>

namespace dpwa {

void Trace::record(TimePoint now, Duration time) {
  const MutexLock lock(mutex_);
  ring_.assign(most_spans, {});
  added_ = 0;
  until_ = (now + std::min(time, longest)).time_since_epoch().count();
}

void Trace::add(const TracedSpan& span) {
  if (span.begin.time_since_epoch().count() >= until_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  if (!ring_.empty()) ring_[added_++ % most_spans] = span;
}

Trace::Page Trace::page(std::uint64_t from, std::size_t most, TimePoint now) {
  Page page;
  const MutexLock lock(mutex_);
  page.missed = added_ - std::min<std::uint64_t>(added_, ring_.size());
  page.next = std::clamp(from, page.missed, added_);
  for (; page.next < added_ && page.spans.size() < most; ++page.next)
    page.spans.push_back(ring_[page.next % most_spans]);
  page.is_last = page.next == added_;
  // Who asks beyond the end compares clocks, and has not read the spans.
  if (page.is_last && from <= added_ && now.time_since_epoch().count() >= until_) {
    ring_ = {};
    added_ = 0;
    until_ = 0;
  }
  return page;
}

Trace& own_trace() {
  static Trace& trace = *new Trace;
  return trace;
}

}  // namespace dpwa
