#include "dpwa/node/trace_handler.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/base/trace.h"
#include "dpwa/snapshot/reused_memory.h"  // of the body of a frame
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
using wire::MessageType;

// In the order of Track.
constexpr std::array<const char*, 4> track_names{"trainer", "pull", "group", "store"};
constexpr std::size_t most_spans = 4096;  // of an answer, in about half of its bytes

std::string describe(const Trace::Page& page) {
  const auto wall_us = static_cast<std::int64_t>(wall_clock_us());
  const TimePoint now = SteadyClock::now();
  // Both ends are cut to microseconds, so that what lies within a span stays there.
  const auto wall_of = [&](TimePoint time) {
    return wall_us + std::chrono::floor<std::chrono::microseconds>(time - now).count();
  };
  nlohmann::ordered_json spans = nlohmann::ordered_json::array();
  for (const TracedSpan& span : page.spans) {
    spans.push_back({track_names.at(static_cast<std::size_t>(span.track)), span.name,
                     span.about.data(), wall_of(span.begin), wall_of(span.begin + span.time)});
  }
  const nlohmann::ordered_json document{{"wall_us", wall_us},
                                        {"next", page.next},
                                        {"missed", page.missed},
                                        {"last", page.is_last},
                                        {"spans", std::move(spans)}};
  // A name may be cut within a character.
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::vector<wire::TypeBound> TraceHandler::requests(const Requester&) const {
  return {{MessageType::trace_request, wire::max_body_bytes(MessageType::trace_request)}};
}

boost::asio::awaitable<bool> TraceHandler::answer(net::Frame request, Responder& responder) {
  const auto wanted = wire::decode_trace_request(request.body);
  if (!wanted) {
    responder.protocol_error(wanted.error().detail);
    co_return false;
  }
  const TimePoint now = SteadyClock::now();
  if (wanted->record_ms > 0) own_trace().record(now, std::chrono::milliseconds(wanted->record_ms));
  const wire::Status status{describe(own_trace().page(wanted->from, most_spans, now))};
  auto frame = wire::encode(status, request.header.request_id);
  co_return co_await responder.send(std::move(frame));
}

}  // namespace dpwa
