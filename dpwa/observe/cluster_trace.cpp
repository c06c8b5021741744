#include "dpwa/observe/cluster_trace.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/trace.h"
#include "dpwa/wire/messages.h"

namespace dpwa::observe {
namespace {

constexpr std::uint64_t beyond_all = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t latest_us = std::int64_t{1} << 53;  // exact as a number of JSON

// A track of the file. Spans of one that is nested lie within one another; others may overlap.
struct TrackRow {
  const char* name;
  const char* about;  // the key of its argument
  bool is_nested;
};
constexpr std::array<TrackRow, 4> rows{{{"trainer", "", true},
                                        {"pull", "peer", true},
                                        {"group", "what", false},
                                        {"store", "key", false}}};

const TrackRow* row_of(const std::string& track) {
  const auto found = std::ranges::find(rows, track, [](const TrackRow& row) { return row.name; });
  return found == rows.end() ? nullptr : &*found;
}

bool is_time(const Json& value) {
  return value.is_number_integer() && value >= 0 && value < latest_us;
}

std::optional<ProcessTrace::Span> span_of(const Json& row) {
  const bool is_span = row.is_array() && row.size() == 5 && row[0].is_string() &&
                       row[1].is_string() && row[2].is_string() && is_time(row[3]) &&
                       is_time(row[4]) && row[3] <= row[4];
  if (!is_span || row_of(row[0].get<std::string>()) == nullptr) return std::nullopt;
  const auto text = [&row](std::size_t at) {
    return to_plain_text(row[at].get<std::string>(), wire::max_name_bytes);
  };
  return ProcessTrace::Span{text(0), text(1), text(2), row[3], row[4]};
}

// Torch's profiler counts from a multiple of this time since 1970, a quarter of a year.
constexpr std::int64_t quarter_us = 7'889'238'000'000;

// Adds the events of one process, by a clock that its own one is `ahead_us` of.
void add(const ProcessTrace& trace, int process, std::int64_t ahead_us, int& pairs, Json& events) {
  const auto meta = [&](const char* what, std::size_t thread, const std::string& name) {
    events.push_back({{"ph", "M"},
                      {"name", what},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", name}}}});
  };
  meta("process_name", 0, trace.name);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::find(trace.spans, rows[i].name, &ProcessTrace::Span::track) !=
        trace.spans.end())
      meta("thread_name", i + 1, rows[i].name);
  }
  // They come in the order of their ends; a viewer nests those of one beginning as they stand.
  std::vector<ProcessTrace::Span> spans = trace.spans;
  std::ranges::sort(spans, {}, [](const ProcessTrace::Span& span) {
    return std::pair(span.begin_us, -span.end_us);
  });
  for (const ProcessTrace::Span& span : spans) {
    const TrackRow& row = *row_of(span.track);
    Json event{{"ph", "X"},
               {"name", span.name},
               {"cat", "dpwa." + span.track},
               {"pid", process},
               {"tid", &row - rows.data() + 1},
               {"ts", span.begin_us - ahead_us}};
    if (!span.about.empty() && *row.about != '\0') event["args"] = {{row.about, span.about}};
    if (row.is_nested) {
      event["dur"] = span.end_us - span.begin_us;
      events.push_back(std::move(event));
      continue;
    }
    event["ph"] = "b";
    event["id"] = ++pairs;
    events.push_back(event);
    event["ph"] = "e";
    event["ts"] = span.end_us - ahead_us;
    event.erase("args");
    events.push_back(std::move(event));
  }
}

void write(const std::filesystem::path& file, std::span<const ProcessTrace> traces) {
  AtomicFile out(file, file.string() + ".tmp", 0666);
  out.write(to_chrome(traces).dump() + '\n');
  out.commit();
}

}  // namespace

std::uint64_t take_page(const StatusAnswer& answer, ProcessTrace& trace) {
  const Json page = parse_status(answer);
  const auto wall = page.find("wall_us");
  if (!answer.error.empty() || wall == page.end() || !is_time(*wall)) {
    trace.problem = answer.error.empty() ? "answers without a trace" : answer.error;
    return 0;
  }
  // The answer with the shortest way says most about the clock.
  const std::int64_t within_us = answer.round_trip / std::chrono::microseconds(2);
  if (trace.within_us < 0 || within_us < trace.within_us) {
    trace.within_us = within_us;
    trace.ahead_us = wall->get<std::int64_t>() - answer.middle_us;
    // As far as can be told they are equal, such as those of one machine.
    if (std::abs(trace.ahead_us) <= within_us) trace.ahead_us = 0;
  }
  trace.missed = count_in(page, "missed");
  for (const Json& row : list_in(page, "spans")) {
    if (auto span = span_of(row)) trace.spans.push_back(*std::move(span));
  }
  return flag_in(page, "last") ? 0 : count_in(page, "next");
}

Json to_chrome(std::span<const ProcessTrace> traces) {
  Json events = Json::array();
  Json clocks = Json::object();
  std::int64_t first_us = latest_us;
  for (const ProcessTrace& trace : traces) {
    for (const ProcessTrace::Span& span : trace.spans)
      first_us = std::min(first_us, span.begin_us - trace.ahead_us);
  }
  const std::int64_t base_us = first_us / quarter_us * quarter_us;
  int process = 0, pairs = 0;
  for (const ProcessTrace& trace : traces) {
    add(trace, ++process, base_us + trace.ahead_us, pairs, events);
    clocks[trace.name] = {{"ahead_us", trace.ahead_us}, {"within_us", trace.within_us}};
  }
  return {{"displayTimeUnit", "ms"},
          {"baseTimeNanoseconds", 1000 * base_us},
          {"otherData", {{"clocks", std::move(clocks)}}},
          {"traceEvents", std::move(events)}};
}

std::vector<ProcessTrace> record_traces(const Asking& asking, std::chrono::milliseconds time) {
  const ClusterStatus found = ask_all(asking);
  std::vector<ProcessTrace> traces;
  std::vector<PeerAddress> places;
  for (const auto* const list : {&found.nodes, &found.servers}) {
    for (const NodeStatus& process : *list) {
      ProcessTrace& trace = traces.emplace_back();
      trace.name = process.name;
      trace.problem = absence_of(process);
      places.push_back(process.place);
    }
  }
  // Asks those of `asked` for what they have not told, and returns those that have more to say.
  std::vector<std::uint64_t> from(traces.size(), beyond_all);
  const auto ask = [&](const std::vector<std::size_t>& asked, std::chrono::milliseconds record) {
    std::vector<PeerAddress> addresses;
    std::vector<wire::TraceRequest> questions;
    for (const std::size_t i : asked) {
      addresses.push_back(places[i]);
      questions.push_back({from[i], static_cast<std::uint32_t>(record.count())});
    }
    const auto answers = query_traces(asking.config.cluster, addresses, questions, asking.timeout,
                                      asking.security.get());
    std::vector<std::size_t> more;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      ProcessTrace& trace = traces[asked[k]];
      const std::size_t before = trace.spans.size();
      from[asked[k]] = take_page(answers[k], trace);
      const bool goes_on = from[asked[k]] > 0 && trace.spans.size() > before;
      if (goes_on && trace.spans.size() < Trace::most_spans) more.push_back(asked[k]);
    }
    return more;
  };
  const auto reached = [&] {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (traces[i].problem.empty()) all.push_back(i);
    }
    return all;
  };
  // Meanwhile further answers compare the clocks.
  constexpr std::chrono::milliseconds between(1000);
  const auto end = std::chrono::steady_clock::now() + time;
  ask(reached(), time);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_until(std::min(std::chrono::steady_clock::now() + between, end));
    std::ranges::fill(from, beyond_all);
    if (std::chrono::steady_clock::now() >= end) break;
    const auto asked = reached();
    ask(asked, {});
    for (const std::size_t i : asked) traces[i].problem.clear();  // it may answer at the end
  }
  std::ranges::fill(from, 0);
  for (auto left = reached(); !left.empty();) left = ask(left, {});
  return traces;
}

void write_traces(const std::filesystem::path& folder, std::span<const ProcessTrace> traces) {
  std::filesystem::create_directories(folder);
  for (const ProcessTrace& trace : traces) {
    std::string name = trace.name;  // a node that joined has chosen its own
    std::ranges::replace(name, '/', '_');
    if (!trace.spans.empty()) write(folder / (name + ".trace.json"), {&trace, 1});
  }
  write(folder / "trace.json", traces);
}

}  // namespace dpwa::observe
