// What members of a group that computes say to one another before and beside their data: refused,
// or encoded to the same bytes again.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "dpwa/collectives/link_greeting.h"
#include "test/fuzz/require.h"

using namespace dpwa::collectives;

namespace {

template <class Message, class... Arguments>
void decode(std::span<const std::byte> data, Arguments... arguments) {
  if (data.size() < Message::bytes) return;
  const auto bytes = data.first<Message::bytes>();
  const auto message = Message::decode(bytes, arguments...);
  if (message) DPWA_FUZZ_REQUIRE(std::ranges::equal(message->encode(), bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  decode<LinkGreeting>(bytes);
  decode<LinkReply>(bytes);
  decode<LinkNews>(bytes, 4);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = MemberAddress::parse(text);
  if (!address) return 0;
  const auto again = MemberAddress::parse(address->text());
  DPWA_FUZZ_REQUIRE(again && again->host == address->host && again->port == address->port &&
                    again->token == address->token);
  return 0;
}
