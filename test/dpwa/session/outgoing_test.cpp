#include "dpwa/session/outgoing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "test/support/broken_invariant.h"

namespace dpwa::session {
namespace {

using Bytes = std::vector<std::byte>;

kvstore::Message push_of(const char* key, std::size_t bytes, std::uint64_t step = 0) {
  kvstore::Push push;
  push.slice = {key, 0};
  push.step = step;
  push.values.resize(bytes);
  std::ranges::fill(push.values, std::byte{7});
  return push;
}

kvstore::Message pull_of(const char* key) {
  return kvstore::Pull{1, {key, 0}, 0, 0};
}

Bytes frame_of(const kvstore::Message& message, std::uint32_t tag) {
  const wire::KvFrame encoded = wire::encode(message, tag);
  Bytes frame = encoded.head;
  for (const auto& part : encoded.payload) frame.insert(frame.end(), part.begin(), part.end());
  return frame;
}

Bytes joined(const std::vector<std::span<const std::byte>>& parts) {
  Bytes all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// All that waits, in the batches in which it leaves.
std::vector<std::vector<std::uint64_t>> batches_of(Outgoing& outgoing) {
  std::vector<std::vector<std::uint64_t>> batches;
  while (outgoing.waits()) {
    outgoing.stage();
    batches.emplace_back();
    for (const Outgoing::Item& item : outgoing.staged()) batches.back().push_back(item.tag);
    if (outgoing.is_staged()) outgoing.wrote(outgoing.staged_bytes());
  }
  return batches;
}

}  // namespace

TEST_CASE("beats, epochs and barriers leave first, each kind in its order") {
  Outgoing outgoing;
  outgoing.add(pull_of("a"), 1);
  outgoing.add(kvstore::Beat(), 2);
  outgoing.add(pull_of("b"), 3);
  outgoing.add(kvstore::Barrier(), 4);
  outgoing.add(kvstore::StateMessage(), 5);
  CHECK(batches_of(outgoing) == std::vector<std::vector<std::uint64_t>>{{2, 4, 1, 3, 5}});
  CHECK_FALSE(outgoing.waits());
  CHECK(outgoing.bytes() == 0);
}

// A worker takes a push for counted when the answer to a later pull comes before its own.
TEST_CASE("answers leave in their order, also those whose values are in shared memory") {
  kvstore::Answer refusal;
  refusal.slice = {"a", 0};
  refusal.kind = kvstore::AnswerKind::not_finite;
  kvstore::Answer value;
  value.slice = {"a", 0};
  value.kind = kvstore::AnswerKind::value;
  value.place = MemoryPlace{0, 0, 100'000, 1};
  Outgoing outgoing;
  outgoing.add(refusal, 1);
  outgoing.add(value, 2);
  outgoing.add(kvstore::Beat(), 3);
  CHECK(batches_of(outgoing) == std::vector<std::vector<std::uint64_t>>{{3, 1, 2}});
}

TEST_CASE("a long message leaves alone, so that what is urgent waits for one message at most") {
  Outgoing outgoing;
  outgoing.add(push_of("a", 1'000'000), 1);
  outgoing.add(push_of("b", 1'000'000), 2);
  outgoing.stage();
  CHECK(outgoing.staged().size() == 1);
  outgoing.add(kvstore::Beat(), 3);
  outgoing.wrote(outgoing.staged_bytes());
  CHECK(batches_of(outgoing) == std::vector<std::vector<std::uint64_t>>{{3}, {2}});
}

TEST_CASE("short messages leave together, up to a bound") {
  Outgoing outgoing;
  for (std::uint64_t tag = 0; tag < 100; ++tag) outgoing.add(push_of("a", 2000), tag);
  const auto batches = batches_of(outgoing);
  CHECK(batches.size() > 1);
  CHECK(batches.front().size() > 20);
  CHECK(batches.front().size() * 2000 <= wire::KvFrames::usual_bytes);
}

TEST_CASE("what is put takes the place of a message with its tag that waits") {
  Outgoing outgoing;
  outgoing.put(push_of("a", 100, 1), 7);
  outgoing.put(pull_of("b"), 8);
  outgoing.put(push_of("a", 200, 2), 7);
  CHECK(outgoing.bytes() == 200 + 2 * 512);
  outgoing.stage();
  REQUIRE(outgoing.staged().size() == 2);
  CHECK(std::get<kvstore::Push>(outgoing.staged()[0].message).step == 2);
  // The tag is free again once its message is staged.
  outgoing.put(push_of("a", 300, 3), 7);
  outgoing.wrote(outgoing.staged_bytes());
  outgoing.stage();
  REQUIRE(outgoing.staged().size() == 1);
  CHECK(std::get<kvstore::Push>(outgoing.staged()[0].message).step == 3);
}

TEST_CASE("what is dropped no longer waits; what is staged stays until it is written") {
  Outgoing outgoing;
  outgoing.put(push_of("a", 100'000), 1);
  outgoing.put(push_of("b", 100), 2);
  outgoing.put(kvstore::Beat(), 3);
  outgoing.stage();  // the beat, and one push
  outgoing.put(push_of("c", 100), 4);
  const std::size_t staged = outgoing.staged().size();
  outgoing.drop_if([](const kvstore::Message&) { return true; });
  outgoing.add(kvstore::Beat(), 5);
  outgoing.drop_urgent();
  CHECK_FALSE(outgoing.waits());
  CHECK(outgoing.bytes() == 0);
  CHECK(outgoing.staged().size() == staged);
  outgoing.add(pull_of("d"), 6);
  outgoing.clear();
  CHECK_FALSE(outgoing.waits());
  CHECK(outgoing.is_staged());
  outgoing.unstage();
  CHECK_FALSE(outgoing.is_staged());
  // A tag that was dropped may wait again.
  outgoing.put(push_of("b", 100), 2);
  CHECK(batches_of(outgoing) == std::vector<std::vector<std::uint64_t>>{{2}});
}

TEST_CASE("the output is the bytes of each message, cut at any byte, and long ones are views") {
  const kvstore::Message push = push_of("a", 5000);
  const kvstore::Message pull = pull_of("b");
  const kvstore::Message beat = kvstore::Beat();
  Bytes expected = wire::encode_kv_read(3);
  for (const auto& [message, tag] : {std::pair(&beat, 3u), {&push, 1u}, {&pull, 2u}}) {
    const Bytes frame = frame_of(*message, tag);
    expected.insert(expected.end(), frame.begin(), frame.end());
  }
  for (std::size_t cut = 0; cut <= expected.size(); ++cut) {
    CAPTURE(cut);
    Outgoing outgoing;
    outgoing.add(push, 1);
    outgoing.add(pull, 2);
    outgoing.add(beat, 3);
    outgoing.add(wire::encode_kv_read(3));
    outgoing.stage();
    const std::byte* values = std::get<kvstore::Push>(outgoing.staged()[1].message).values.data();
    CHECK(std::ranges::any_of(outgoing.output(),
                              [&](const auto& part) { return part.data() == values; }));
    CHECK(outgoing.staged_bytes() == expected.size());
    const auto whole = joined(outgoing.output());
    CHECK(whole == expected);
    outgoing.wrote(cut);
    CHECK(outgoing.is_staged() == (cut < expected.size()));
    const auto rest = joined(outgoing.output());
    CHECK(std::ranges::equal(rest, std::span(expected).subspan(cut)));
    if (cut < expected.size()) outgoing.wrote(expected.size() - cut);
    CHECK_FALSE(outgoing.is_staged());
  }
}

TEST_CASE("a message can leave in another form than it waits in") {
  Outgoing outgoing;
  outgoing.put(push_of("a", 100'000), 1);
  outgoing.put(push_of("b", 100'000), 2);
  outgoing.stage([](const kvstore::Message& message) -> std::optional<kvstore::Message> {
    kvstore::Push other = std::get<kvstore::Push>(message);
    other.values.clear();
    other.place = MemoryPlace{0, 0, 100'000, 2};
    return other;
  });
  CHECK(outgoing.staged().size() == 2);  // they are short now
  CHECK(outgoing.staged_bytes() < 1000);
  CHECK(std::get<kvstore::Push>(outgoing.staged()[0].message).values.size() == 100'000);
}

TEST_CASE("a message that cannot be encoded is left out") {
  Outgoing outgoing;
  const kvstore::Message impossible = push_of("a", wire::max_kv_slice_bytes + 1);
  outgoing.add(impossible, 1);
  outgoing.add(pull_of("b"), 2);
  CHECK(batches_of(outgoing) == std::vector<std::vector<std::uint64_t>>{{2}});
  outgoing.add(impossible, 3);
  outgoing.stage();
  CHECK_FALSE(outgoing.is_staged());
  CHECK(outgoing.bytes() == 0);
}

TEST_CASE("messages that wait count against the bound of a connection, also without values") {
  Outgoing outgoing;
  constexpr std::size_t count = 1000;
  for (std::uint64_t i = 0; i < count; ++i) outgoing.add(kvstore::Answer{}, i);
  CHECK(outgoing.bytes() >= count * sizeof(kvstore::Answer));
  batches_of(outgoing);
  CHECK(outgoing.bytes() == 0);
}

TEST_CASE("each event is allowed in its states, and breaks an invariant in the others") {
  enum class State { empty, waiting, staged, half_written };
  const auto bring = [](Outgoing& outgoing, State state) {
    if (state == State::empty) return;
    outgoing.add(pull_of("a"), 1);
    if (state == State::waiting) return;
    outgoing.stage();
    if (state == State::half_written) outgoing.wrote(5);
  };
  for (const State state : {State::empty, State::waiting, State::staged, State::half_written}) {
    CAPTURE(static_cast<int>(state));
    const bool is_staged = state >= State::staged;
    const auto in_state = [&](auto event) {
      Outgoing outgoing;
      bring(outgoing, state);
      return test::line_of_broken([&] { event(outgoing); });
    };
    CHECK(in_state([](Outgoing& out) { out.stage(); }).empty() == !is_staged);
    CHECK(in_state([](Outgoing& out) { out.wrote(1); }).empty() == is_staged);
    CHECK_FALSE(in_state([](Outgoing& out) { out.wrote(out.staged_bytes() + 1); }).empty());
    CHECK(in_state([](Outgoing& out) { out.unstage(); }).empty());
    CHECK(in_state([](Outgoing& out) { out.clear(); }).empty());
    CHECK(in_state([](Outgoing& out) { out.drop_urgent(); }).empty());
    CHECK(in_state([](Outgoing& out) { out.add(kvstore::Beat(), 1); }).empty());
    CHECK(in_state([](Outgoing& out) { out.put(kvstore::Beat(), 1); }).empty());
    CHECK(in_state([](Outgoing& out) { (void)out.output(); }).empty());
  }
}

}  // namespace dpwa::session
