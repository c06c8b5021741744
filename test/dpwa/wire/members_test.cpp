#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>

#include "test/dpwa/wire/alterations.h"
#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

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
