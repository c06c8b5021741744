#include "dpwa/base/trace.h"

#include <doctest/doctest.h>

#include <string>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
constexpr TimePoint origin = TimePoint{} + 1h;

void add(Trace& trace, TimePoint at, const char* name = "pull") {
  trace.add({Track::pull, {"w2"}, name, at, 3ms});
}

}  // namespace

TEST_CASE("a trace has the spans that begin while it records, and none before it is asked for") {
  Trace trace;
  CHECK_FALSE(trace.is_on());
  add(trace, origin);
  trace.record(origin, 1s);
  CHECK(trace.is_on());
  add(trace, origin + 1ms, "first");
  add(trace, origin + 999ms, "second");
  add(trace, origin + 1s, "late");
  const Trace::Page page = trace.page(0, 100, origin + 500ms);
  REQUIRE(page.spans.size() == 2);
  CHECK(std::string(page.spans[0].name) == "first");
  CHECK(std::string(page.spans[0].about.data()) == "w2");
  CHECK(page.spans[0].time == 3ms);
  CHECK(std::string(page.spans[1].name) == "second");
  CHECK(page.is_last);
  CHECK(page.missed == 0);
}

TEST_CASE("a trace is read page by page, and gives its memory up with the last one") {
  Trace trace;
  trace.record(origin, 1s);
  for (int i = 0; i < 5; ++i) add(trace, origin + i * 1ms);
  Trace::Page page = trace.page(0, 3, origin + 2s);
  CHECK(page.spans.size() == 3);
  CHECK_FALSE(page.is_last);
  CHECK(trace.is_on());
  page = trace.page(page.next, 3, origin + 2s);
  CHECK(page.spans.size() == 2);
  CHECK(page.spans[0].begin == origin + 3ms);
  CHECK(page.is_last);
  CHECK_FALSE(trace.is_on());
  CHECK(trace.page(page.next, 3, origin + 2s).spans.empty());
}

TEST_CASE("of more spans than the ring has room for the latest stay, and the others are counted") {
  Trace trace;
  trace.record(origin, 1h);
  CHECK(trace.page(0, 1, origin).is_last);
  for (std::size_t i = 0; i < Trace::most_spans + 7; ++i) add(trace, origin + 1us * i);
  const Trace::Page page = trace.page(2, 1, origin);
  CHECK(page.missed == 7);
  CHECK(page.next == 8);
  CHECK(page.spans[0].begin == origin + 7us);
  add(trace, origin + 1min);  // the longest time
  CHECK(trace.page(Trace::most_spans, 100, origin).spans.size() == 7);
  trace.record(origin, 1s);
  CHECK(trace.page(0, 1, origin).spans.empty());
}

TEST_CASE("a scope is a span of the trace of its process, while that records") {
  const auto now = std::chrono::steady_clock::now;
  { const TraceScope before(Track::store, "before"); }
  own_trace().record(now(), 1min);
  { const TraceScope scope(Track::store, "push", std::string(99, 'x')); }
  const Trace::Page page = own_trace().page(0, 9, now() + 1h);
  REQUIRE(page.spans.size() == 1);
  CHECK(page.spans[0].track == Track::store);
  CHECK(std::string(page.spans[0].about.data()) == std::string(TracedSpan::most_about, 'x'));
  CHECK_FALSE(own_trace().is_on());
}

}  // namespace dpwa
