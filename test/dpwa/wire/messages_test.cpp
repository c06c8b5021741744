#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

// That fields come through is seen from the bytes: golden_test.cpp has those of ordinary messages.
TEST_CASE("the longest message of each type is as long as its bound, and survives the round trip") {
  const std::string name(max_name_bytes, 'n');
  const auto is_longest = [](const std::vector<std::byte>& frame) {
    CHECK(body_of(frame).size() == max_body_bytes(header_of(frame).type));
    CHECK(survives(frame));
  };
  Hello hello{.role = Role::node, .capabilities = ~0u, .cluster = name, .node = name};
  hello.incarnation = ~std::uint64_t{0};
  is_longest(encode(hello, 3));
  for (const NodeState state : {NodeState::joining, NodeState::ready, NodeState::finished}) {
    is_longest(encode(
        Welcome{name, ~std::uint64_t{0}, ~0u, state, 99, 1e300, std::string(max_offer_bytes, 'o')},
        1));
  }
  Pull pull{.known_version = ~std::uint64_t{0}, .offset = 1, .length = max_snapshot_bytes - 1};
  pull.deadline_ms = ~0u;
  pull.chunk_bytes = max_chunk_bytes;
  is_longest(encode(pull, 1));
  is_longest(encode(TraceRequest{}, 1));
  is_longest(encode(Status{std::string(max_status_bytes, 'x')}, 1));
  MemberExchange members = sample_members();
  members.claims.assign(max_member_entries,
                        {name, std::vector<std::string>(max_member_addresses, std::string(45, 'f')),
                         1, ~std::uint64_t{0}, max_refutation, MemberStatus::left});
  is_longest(encode(members, 3));
  Mapped mapped = sample_mapped();
  mapped.place = {max_shared_buffers - 1, max_snapshot_bytes - 64, 64, ~std::uint64_t{0} - 1};
  is_longest(encode(mapped, 3));
  // A reason that is too long or not printable is mended rather than lost.
  is_longest(encode(Reject{RejectCode::model, std::string(max_reason_bytes + 1, 'x')}, 1));
  is_longest(encode(Error{std::string(max_reason_bytes + 1, 'x')}, 1));
  CHECK(decode_error(body_of(encode(Error{"no such\trange"}, 1)))->reason == "no such?range");
  CHECK(decode_reject(body_of(encode(Reject{RejectCode::model, "a\nb"}, 1)))->reason == "a?b");
}

TEST_CASE("every value of what a message may say survives the round trip") {
  for (int code = 1; code <= 6; ++code)
    CHECK(survives(encode(Reject{static_cast<RejectCode>(code), "because"}, 1)));
  for (const Codec codec : {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8})
    CHECK(survives(encode(Pull{.codec = codec}, 1)));
  for (const std::optional<std::uint16_t> taken :
       {std::optional<std::uint16_t>(), {0}, {1}, {0xABCD}, {0xFFFF}}) {
    Pull sent;
    sent.taken = taken;
    const auto frame = encode(sent, 1);
    CHECK(survives(frame));
    CHECK(decode_pull(body_of(frame))->taken == taken);
  }
  for (const auto flag :
       {&Pull::full, &Pull::for_final_average, &Pull::unchecked_chunks, &Pull::may_map}) {
    Pull sent;
    sent.*flag = true;
    const auto frame = encode(sent, 1);
    CHECK(survives(frame));
    CHECK_FALSE(frame == encode(Pull{}, 1));
    CHECK((*decode_pull(body_of(frame))).*flag);
  }
  CHECK(survives(encode(Status{"{}"}, 1)));
  CHECK(survives(encode(Manifest(std::vector<TensorSpec>{}), 1)));
  std::vector<std::uint64_t> shape(max_rank, 1);
  shape.front() = max_snapshot_bytes;
  const Manifest largest(
      {{std::string(max_tensor_name_bytes, 'n'), DType::uint8, BlendRule::carry, shape}});
  CHECK(survives(encode(largest, 1)));
  CHECK(largest.total_bytes() == max_snapshot_bytes);
}

TEST_CASE("unknown codecs, flags and reserved bytes of a PULL are refused") {
  const std::pair<std::size_t, int> faults[] = {{32, 0},  {32, 5},    {32, 255}, {33, 16},
                                                {33, 17}, {33, 0x40}, {34, 1},   {35, 1}};
  for (const auto& [offset, value] : faults) {
    const auto pull =
        decode_pull(altered(encode(Pull{}, 1), offset, static_cast<std::uint8_t>(value)));
    REQUIRE_FALSE(pull.has_value());
    CHECK(pull.error().fault == Fault::bad_value);
  }
}

TEST_CASE("a PULL for unusable chunks is refused") {
  for (const std::uint32_t bytes : {0u, 64u, 4095u, 4097u, max_chunk_bytes + 64, ~0u}) {
    Pull message;
    message.chunk_bytes = bytes;
    CHECK_THROWS_AS(encode(message, 1), std::invalid_argument);
  }
  const auto pull = decode_pull(altered(encode(Pull{}, 1), 28, 1));  // 512 KiB and one byte
  REQUIRE_FALSE(pull.has_value());
  CHECK(pull.error().fault == Fault::bad_value);
}

TEST_CASE("a range that ends beyond the bound or overflows is refused") {
  CHECK_THROWS_AS(encode(Pull{.offset = max_snapshot_bytes, .length = 1}, 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(encode(Pull{.offset = ~0ull, .length = 2}, 1), std::invalid_argument);
  for (const std::size_t highest_byte : {15, 23}) {  // of the offset, of the length
    const auto pull = decode_pull(altered(encode(Pull{}, 1), highest_byte, 0xFF));
    REQUIRE_FALSE(pull.has_value());
    CHECK(pull.error().fault == Fault::bad_value);
  }
}

TEST_CASE("a STATUS that no peer would accept is not sent") {
  CHECK_THROWS_AS(encode(Status{std::string(max_status_bytes + 1, 'x')}, 1), std::invalid_argument);
  CHECK_THROWS_AS(encode(Status{"{\n}"}, 1), std::invalid_argument);
  CHECK_THROWS_AS(encode(TraceRequest{0, max_record_ms + 1}, 1), std::invalid_argument);
}

TEST_CASE("a message without fields is its checksum alone") {
  for (const MessageType type :
       {MessageType::manifest_request, MessageType::not_modified, MessageType::not_ready,
        MessageType::not_fresh, MessageType::busy, MessageType::status_request}) {
    const auto frame = encode_empty(type, 77);
    CHECK(frame.size() == header_bytes + 4);
    CHECK(header_of(frame).type == type);
    CHECK(header_of(frame).request_id == 77);
    CHECK(decode_empty(body_of(frame)).has_value());
  }
  const std::vector<std::byte> one_byte(1);
  const auto more = decode_empty(sealed(one_byte));
  REQUIRE_FALSE(more.has_value());
  CHECK(more.error().fault == Fault::bad_length);
}

TEST_CASE("a MEMBERS that no node could use is neither sent nor accepted") {
  const auto refused = [](const std::function<void(MemberExchange&)>& change) {
    MemberExchange message = sample_members();
    change(message);
    CHECK_THROWS_AS(encode(message, 1), std::invalid_argument);
  };
  refused([](auto& m) { m.claims.clear(); });
  refused([](auto& m) { m.claims.resize(max_member_entries + 1, m.claims[0]); });
  refused([](auto& m) { m.claims[1].name = ""; });
  refused([](auto& m) { m.claims[1].name = std::string(max_name_bytes + 1, 'n'); });
  refused([](auto& m) { m.claims[1].name = "two\nlines"; });
  refused([](auto& m) { m.claims[1].port = 0; });
  refused([](auto& m) { m.claims[1].incarnation = 0; });
  refused([](auto& m) { m.claims[1].refutation = max_refutation + 1; });
  refused([](auto& m) { m.claims[1].addresses.clear(); });
  refused([](auto& m) { m.claims[1].addresses.assign(max_member_addresses + 1, "::1"); });
  refused([](auto& m) { m.claims[1].addresses = {"example.org"}; });
  refused([](auto& m) { m.claims[1].addresses = {"1"}; });
  refused([](auto& m) { m.claims[1].addresses = {std::string(46, '1')}; });

  const auto frame = encode(sample_members(), 1);
  constexpr std::size_t first = 18;  // the first entry
  for (const int status : {0, 5, 255})
    CHECK(fault_of(decode_members(altered(frame, first, std::uint8_t(status)))) ==
          Fault::bad_value);
  CHECK(fault_of(decode_members(altered(frame, first + 1, 0))) == Fault::bad_value);
  CHECK(fault_of(decode_members(altered(frame, first + 1, 5))) == Fault::bad_value);
  CHECK(fault_of(decode_members(altered(frame, first + 7, 0x81))) == Fault::bad_value);
  CHECK(fault_of(decode_members(altered(frame, 16, 0))) == Fault::bad_value);   // no entry
  CHECK(fault_of(decode_members(altered(frame, 17, 1))) == Fault::bad_value);   // 260 entries
  CHECK(fault_of(decode_members(altered(frame, 16, 5))) == Fault::truncated);   // one too many
  CHECK(fault_of(decode_members(altered(frame, 16, 3))) == Fault::bad_length);  // one too few
}

}  // namespace
}  // namespace dpwa::wire
