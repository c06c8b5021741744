#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("a PULL survives the round trip") {
  for (const bool full : {false, true}) {
    Pull sent{.known_version = ~std::uint64_t{0}, .offset = 1, .length = max_snapshot_bytes - 1};
    sent.full = full;
    sent.for_final_average = !full;
    sent.unchecked_chunks = !full;
    sent.deadline_ms = ~0u;
    sent.chunk_bytes = max_chunk_bytes;
    const auto frame = encode(sent, 1);
    CHECK(body_of(frame).size() == max_body_bytes(MessageType::pull));
    const auto pull = decode_pull(body_of(frame));
    REQUIRE(pull.has_value());
    CHECK(pull->known_version == sent.known_version);
    CHECK(pull->offset == sent.offset);
    CHECK(pull->length == sent.length);
    CHECK(pull->deadline_ms == sent.deadline_ms);
    CHECK(pull->chunk_bytes == max_chunk_bytes);
    CHECK(pull->codec == Codec::raw);
    CHECK(pull->full == full);
    CHECK(pull->for_final_average == !full);
    CHECK(pull->unchecked_chunks == !full);
  }
}

TEST_CASE("a PULL states what was taken, or that nothing is stated") {
  for (const std::optional<std::uint16_t> taken :
       {std::optional<std::uint16_t>(), {0}, {1}, {0xABCD}, {0xFFFF}}) {
    Pull sent;
    sent.taken = taken;
    const auto pull = decode_pull(body_of(encode(sent, 1)));
    REQUIRE(pull.has_value());
    CHECK(pull->taken == taken);
  }
}

TEST_CASE("a PULL names the codec that it wants") {
  for (const Codec codec : {Codec::raw, Codec::fp16, Codec::bf16, Codec::int8}) {
    const auto pull = decode_pull(body_of(encode(Pull{.codec = codec}, 1)));
    REQUIRE(pull.has_value());
    CHECK(pull->codec == codec);
  }
}

TEST_CASE("a PULL says whether its answer may be MAPPED") {
  for (const bool may_map : {false, true}) {
    const auto pull = decode_pull(body_of(encode(Pull{.may_map = may_map}, 1)));
    REQUIRE(pull.has_value());
    CHECK(pull->may_map == may_map);
  }
}

TEST_CASE("a PULL with defaults survives the round trip") {
  const auto pull = decode_pull(body_of(encode(Pull{}, 1)));
  REQUIRE(pull.has_value());
  CHECK(pull->known_version == 0);
  CHECK(pull->length == 0);
  CHECK_FALSE(pull->full);
  CHECK_FALSE(pull->unchecked_chunks);
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

TEST_CASE("a STATUS survives the round trip up to its bound") {
  for (const std::string& json : {std::string("{}"), std::string(max_status_bytes, 'x')}) {
    const auto frame = encode(Status{json}, 1);
    CHECK(body_of(frame).size() <= max_body_bytes(MessageType::status));
    const auto status = decode_status(body_of(frame));
    REQUIRE(status.has_value());
    CHECK(status->json == json);
  }
}

TEST_CASE("a STATUS that no peer would accept is not sent") {
  CHECK_THROWS_AS(encode(Status{std::string(max_status_bytes + 1, 'x')}, 1), std::invalid_argument);
  CHECK_THROWS_AS(encode(Status{"{\n}"}, 1), std::invalid_argument);
}

TEST_CASE("an ERROR survives the round trip, its reason mended") {
  const auto error = decode_error(body_of(encode(Error{"no such\trange"}, 1)));
  REQUIRE(error.has_value());
  CHECK(error->reason == "no such?range");
  const auto longest = encode(Error{std::string(max_reason_bytes + 1, 'x')}, 1);
  CHECK(body_of(longest).size() == max_body_bytes(MessageType::error));
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

TEST_CASE("MEMBERS survives the round trip, the longest too") {
  MemberExchange sent = sample_members();
  for (const bool longest : {false, true}) {
    if (longest) {
      const MemberClaim claim{std::string(max_name_bytes, 'n'),
                              std::vector<std::string>(max_member_addresses, std::string(45, 'f')),
                              1,
                              ~std::uint64_t{0},
                              max_refutation,
                              MemberStatus::left};
      sent.claims.assign(max_member_entries, claim);
    }
    const auto frame = encode(sent, 3);
    if (longest) CHECK(body_of(frame).size() == max_body_bytes(MessageType::members));
    const auto again = decode_members(body_of(frame));
    REQUIRE(again.has_value());
    CHECK(again->total == sent.total);
    CHECK(again->digest == sent.digest);
    CHECK(again->part == sent.part);
    CHECK(again->claims == sent.claims);
  }
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

TEST_CASE("MEMBERS cut short anywhere is refused") {
  const auto frame = encode(sample_members(), 1);
  const auto body = body_of(frame);
  for (std::size_t size = 0; size + 4 < body.size(); ++size)
    CHECK_FALSE(decode_members(sealed(body.first(size))).has_value());
}

}  // namespace
}  // namespace dpwa::wire
