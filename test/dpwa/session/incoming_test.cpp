#include "dpwa/session/incoming.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "dpwa/wire/kv_messages.h"
#include "test/dpwa/session/source.h"
#include "test/dpwa/wire/samples.h"
#include "test/support/broken_invariant.h"

namespace dpwa::session {
namespace {

using test::any_frame;
using test::Source;
using wire::Fault;
using wire::MessageType;
using Bytes = std::vector<std::byte>;

constexpr std::size_t read_ahead[] = {0, 1, 40, 512, 32 << 10};

// What frame and parts of a SNAPSHOT become, in reads of at most `most` bytes.
void check_comes_whole(const wire::Sample& sample, std::size_t ahead, std::size_t most,
                       std::size_t part_bytes) {
  CAPTURE(sample.name);
  CAPTURE(ahead);
  CAPTURE(most);
  Source source(sample.frame, most);
  Incoming incoming(ahead);
  auto frame = source.next(incoming, any_frame());
  REQUIRE((frame && *frame));
  CHECK((*frame)->header.type == wire::header_of(sample.frame).type);
  CHECK((*frame)->header.request_id == wire::header_of(sample.frame).request_id);
  const auto body = test::whole_body(source, incoming, std::move(**frame), part_bytes);
  REQUIRE(body);
  CHECK(std::ranges::equal(*body, wire::body_of(sample.frame)));
  CHECK(incoming.is_between_frames());
  CHECK_FALSE(incoming.holds_bytes());
  CHECK(source.rest().empty());
}

Bytes header_frame(MessageType type, std::uint64_t body_bytes) {
  const auto header = wire::encode_header({type, 1, body_bytes});
  return {header.begin(), header.end()};
}

// A push whose values are `bytes` long.
Bytes push_frame(std::size_t bytes) {
  kvstore::Push push;
  push.slice = {"w", 0};
  push.values.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) push.values[i] = static_cast<std::byte>(i * 7 + i / 251);
  const kvstore::Message message(std::move(push));
  const wire::KvFrame encoded = wire::encode(message, 1);
  Bytes frame = encoded.head;
  for (const auto& part : encoded.payload) frame.insert(frame.end(), part.begin(), part.end());
  return frame;
}

}  // namespace

TEST_CASE("every frame comes whole, however the reads cut it") {
  for (const wire::Sample& sample : wire::samples()) {
    for (const std::size_t ahead : read_ahead) {
      check_comes_whole(sample, ahead, sample.frame.size(), 64);
      check_comes_whole(sample, ahead, 1, 7);
      check_comes_whole(sample, ahead, 33, 1 << 20);
    }
  }
}

TEST_CASE("a frame that is cut at any byte is not there, and comes with its rest") {
  for (const wire::Sample& sample : wire::samples()) {
    CAPTURE(sample.name);
    for (std::size_t cut = 0; cut < sample.frame.size();
         cut += sample.frame.size() > 4096 ? 97 : 1) {
      Incoming incoming(cut % 2 == 0 ? 512 : 0);
      const std::span frame(sample.frame);
      Source first(frame.first(cut));
      Source rest(frame.subspan(cut));
      incoming.expect(any_frame());
      if (!first.read_until_ready(incoming)) REQUIRE(rest.read_until_ready(incoming));
      auto taken = incoming.take();
      REQUIRE(taken.has_value());
      Source& more = first.rest().empty() ? rest : first;
      Bytes body = std::move(taken->body);
      body.insert(body.end(), taken->payload.begin(), taken->payload.end());
      while (incoming.unlanded_bytes() > 0) {
        Bytes part(std::min<std::uint64_t>(100, incoming.unlanded_bytes()));
        incoming.land(part);
        if (!more.read_until_ready(incoming)) REQUIRE(rest.read_until_ready(incoming));
        body.insert(body.end(), part.begin(), part.end());
      }
      CHECK(std::ranges::equal(body, wire::body_of(sample.frame)));
    }
  }
}

TEST_CASE("many short frames come with one read, and what follows a long one is not lost") {
  Bytes bytes;
  std::size_t count = 0;
  const Bytes pull = wire::encode(wire::Pull(), 5);
  for (; count < 100; ++count) bytes.insert(bytes.end(), pull.begin(), pull.end());
  const Bytes push = push_frame(100'000);
  bytes.insert(bytes.end(), push.begin(), push.end());
  bytes.insert(bytes.end(), pull.begin(), pull.end());
  Source source(bytes);
  Incoming incoming(32 << 10);
  for (std::size_t i = 0; i < count; ++i) {
    const auto frame = source.next(incoming, any_frame());
    REQUIRE((frame && *frame));
    CHECK((*frame)->header.type == MessageType::pull);
    CHECK(bytes.size() - source.rest().size() == 32 << 10);
  }
  const auto frame = source.next(incoming, any_frame());
  REQUIRE((frame && *frame));
  CHECK((*frame)->payload.size() == 100'000);
  CHECK(incoming.is_between_frames());
  const auto last = source.next(incoming, any_frame());
  REQUIRE((last && *last));
  CHECK((*last)->header.type == MessageType::pull);
}

TEST_CASE("a payload goes to the place that is named for it, past what is read ahead") {
  constexpr std::size_t bytes = 100'000;
  const Bytes push = push_frame(bytes);
  Bytes place(bytes);
  std::size_t asked = 0;
  Incoming incoming(512,
                    [&](MessageType type, std::span<const std::byte> head,
                        std::uint64_t payload) -> std::span<std::byte> {
                      ++asked;
                      CHECK(type == MessageType::kv_push);
                      CHECK(head.size() == push.size() - wire::header_bytes - payload);
                      CHECK(payload == bytes);
                      return place;
                    });
  Source source(push, 1000);
  incoming.expect(any_frame());
  bool direct = false;
  while (!incoming.ready()) {
    const auto want = incoming.want();
    direct = direct || want.target.data() + want.target.size() == place.data() + place.size();
    REQUIRE(source.read_into(incoming));
  }
  const auto frame = incoming.take();
  REQUIRE(frame.has_value());
  CHECK(direct);
  CHECK(asked == 1);
  CHECK(frame->payload.empty());
  CHECK(std::ranges::equal(place, std::span(push).last(bytes)));
}

TEST_CASE("a frame that is not expected, or too long, is refused by its header alone") {
  struct Case {
    Bytes frame;
    Expected expected;
    Fault fault;
    const char* words;
  };
  const wire::TypeBound bound{MessageType::kv_push, 1000};
  Bytes http(wire::header_bytes, std::byte{'G'});
  Bytes later = wire::encode(wire::Pull(), 1);
  later[4] = std::byte{9};
  Bytes damaged = wire::encode(wire::Pull(), 1);
  damaged[9] ^= std::byte{1};
  const Expected pulls{wire::TypeSet(MessageType::pull)};
  const Case cases[] = {
      {header_frame(MessageType::status, 4), pulls, Fault::bad_type,
       "type 13 is not expected here"},
      {header_frame(MessageType::snapshot, 1000), pulls, Fault::bad_length, "accepted: 96 to 0"},
      {header_frame(MessageType::kv_push, 100), pulls, Fault::bad_type, "unknown message type"},
      {header_frame(MessageType::kv_push, 1001), Expected(std::span(&bound, 1)), Fault::bad_length,
       "accepted: 4 to 1000"},
      {header_frame(MessageType::manifest, 5000),
       Expected(wire::TypeSet(MessageType::manifest), 4999), Fault::bad_length,
       "a message of 5000 bytes, where 4999 are allowed"},
      {http, pulls, Fault::bad_magic, "not a dpwa peer"},
      {later, pulls, Fault::bad_version, "protocol version 9"},
      {damaged, pulls, Fault::bad_checksum, "checksum of the header"}};
  for (const Case& each : cases) {
    CAPTURE(each.words);
    Source source(each.frame, wire::header_bytes);
    Incoming incoming(0);
    const auto frame = source.next(incoming, each.expected);
    REQUIRE(frame);
    REQUIRE_FALSE(frame->has_value());
    CHECK(frame->error().fault == each.fault);
    CHECK(frame->error().detail.find(each.words) != std::string::npos);
  }
}

TEST_CASE("memory follows the bytes that have come, not the length that is announced") {
  const Bytes start = header_frame(MessageType::status, wire::max_body_bytes(MessageType::status));
  Incoming incoming(0);
  Source source(start);
  incoming.expect(any_frame());
  CHECK_FALSE(source.read_until_ready(incoming));
  CHECK(incoming.want().target.size() == 64 << 10);
  Bytes head = header_frame(MessageType::kv_push, 100'000);
  head.resize(head.size() + 4, std::byte{0xff});  // the length of its head
  Source store(head);
  Incoming other(0);
  const auto frame = store.next(other, any_frame());
  REQUIRE(frame);
  REQUIRE_FALSE(frame->has_value());
  CHECK(frame->error().fault == Fault::bad_length);
}

TEST_CASE("the memory of values grows with what has come, and is there at once the next time") {
  const Bytes frame = push_frame(1'000'000);
  Incoming incoming(512);
  const auto first_place = [&](std::size_t head) {
    Source source(std::span<const std::byte>(frame).first(head));
    incoming.expect(any_frame());
    CHECK_FALSE(source.read_until_ready(incoming));
    return incoming.want().target.size();
  };
  const std::size_t head = frame.size() - 1'000'000;
  CHECK(first_place(head) == 64 << 10);
  incoming.clear();
  Source source(frame, 100'000);
  const auto whole = source.next(incoming, any_frame());
  REQUIRE((whole && *whole));
  CHECK(std::ranges::equal((*whole)->payload, std::span(frame).subspan(head)));
  CHECK(first_place(head) == 1'000'000);
}

TEST_CASE("a large part of a snapshot is worth a wake-up before it is whole") {
  wire::SnapshotReplyHead head;
  head.length = 200'000;
  head.chunk_bytes = 512 << 10;
  const Bytes lead = wire::encode(head, 1);
  Source source(lead);
  Incoming incoming(512);
  const auto frame = source.next(incoming, any_frame());
  REQUIRE((frame && *frame));
  CHECK(incoming.unlanded_bytes() == 200'008);
  Bytes part(200'008);
  incoming.land(part);
  CHECK_FALSE(incoming.ready());
  const auto want = incoming.want();
  CHECK(want.target.data() == part.data());
  CHECK(want.target.size() == part.size());
  CHECK(want.least == 64 << 10);
  incoming.took(70'000);
  CHECK(incoming.landed() == 70'000);
  CHECK_FALSE(incoming.ready());
  incoming.want();
  incoming.took(130'008 - 100);
  CHECK(incoming.landed() == 199'908);
  // The end comes with what is read ahead.
  CHECK(incoming.want().target.size() == 512);
  incoming.took(40);
  CHECK(incoming.landed() == 199'948);
  CHECK(incoming.want().least == 60);
  incoming.took(61);
  CHECK(incoming.landed() == part.size());
  CHECK(incoming.ready());
  CHECK(incoming.is_between_frames());
  CHECK(incoming.holds_bytes());
}

// Every event in every state: what is allowed leaves the state named, and the rest breaks an
// invariant.
TEST_CASE("each event is allowed in its states, and breaks an invariant in the others") {
  enum class State { idle, header, body, payload, whole, between_parts, part, landed, broken };
  enum class Event { expect, ready, want, took, take, land, clear };
  const auto snapshot = [] {
    wire::SnapshotReplyHead head;
    head.length = 10;
    head.chunk_bytes = 4096;
    return wire::encode(head, 1);
  }();
  static Bytes part(18);
  // Brings it into the state.
  const auto bring = [&](Incoming& incoming, State state) {
    if (state == State::idle) return;
    incoming.expect(state == State::broken ? Expected(wire::TypeSet(MessageType::hello))
                                           : any_frame());
    Bytes bytes = wire::encode(wire::Pull(), 1);
    if (state == State::header) bytes.resize(20);
    if (state == State::body) bytes.resize(wire::header_bytes + 3);
    if (state == State::payload) {
      bytes = push_frame(1000);
      bytes.resize(bytes.size() - 10);
    }
    if (state >= State::between_parts && state != State::broken) bytes = snapshot;
    Source source(bytes);
    source.read_until_ready(incoming);
    if (state < State::between_parts || state == State::broken) return;
    REQUIRE(incoming.take().has_value());
    if (state == State::between_parts) return;
    incoming.land(part);
    CHECK_FALSE(incoming.ready());
    if (state == State::part) return;
    Source rest(part);
    REQUIRE(rest.read_until_ready(incoming));
  };
  const auto happens = [&](Incoming& incoming, Event event) {
    switch (event) {
      case Event::expect:
        return incoming.expect(any_frame());
      case Event::ready:
        return (void)incoming.ready();
      case Event::want:
        return (void)incoming.want();
      case Event::took:
        return incoming.took(1);
      case Event::take:
        return (void)incoming.take();
      case Event::land:
        return incoming.land(std::span(part).first(1));
      case Event::clear:
        return incoming.clear();
    }
  };
  const auto is_allowed = [](State state, Event event) {
    const bool reads = state == State::header || state == State::body || state == State::payload ||
                       state == State::part;
    switch (event) {
      case Event::expect:
        return state == State::idle || state == State::landed;
      case Event::ready:
        return state != State::idle;
      case Event::want:
        return reads;
      case Event::took:
        return false;  // without want()
      case Event::take:
        return state == State::whole || state == State::broken;
      case Event::land:
        return state == State::between_parts;
      case Event::clear:
        return true;
    }
    return false;
  };
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{512}}) {
    for (int state = 0; state <= static_cast<int>(State::broken); ++state) {
      for (int event = 0; event <= static_cast<int>(Event::clear); ++event) {
        CAPTURE(ahead);
        CAPTURE(state);
        CAPTURE(event);
        Incoming incoming(ahead);
        bring(incoming, static_cast<State>(state));
        const std::string broken =
            test::line_of_broken([&] { happens(incoming, static_cast<Event>(event)); });
        CHECK(broken.empty() == is_allowed(static_cast<State>(state), static_cast<Event>(event)));
        // Cancelling is possible from everywhere, and the next connection finds nothing left.
        incoming.clear();
        const Bytes pull = wire::encode(wire::Pull(), 1);
        Source source(pull);
        const auto frame = source.next(incoming, any_frame());
        CHECK((frame && *frame));
      }
    }
  }
}

TEST_CASE("no more comes than was wanted") {
  Incoming incoming(0);
  incoming.expect(any_frame());
  CHECK(incoming.want().target.size() == wire::header_bytes);
  CHECK(test::breaks("no more bytes come than were wanted",
                     [&] { incoming.took(wire::header_bytes + 1); }));
}

TEST_CASE("a target of another size than the payload is a defect") {
  Bytes place(10);
  Incoming incoming(0, [&](auto...) { return std::span(place); });
  const Bytes push = push_frame(100);
  Source source(push);
  CHECK(test::breaks("a payload has a place of its size",
                     [&] { source.next(incoming, any_frame()); }));
}

}  // namespace dpwa::session
