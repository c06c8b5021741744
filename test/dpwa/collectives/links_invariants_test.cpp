// What groups over streams guarantee by themselves: each of their invariants broken once.

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "dpwa/collectives/exchanges.h"
#include "dpwa/collectives/remote_group.h"
#include "dpwa/collectives/tcp_links.h"
#include "test/dpwa/collectives/memory_links.h"
#include "test/support/broken_invariant.h"

namespace dpwa::collectives {
namespace {

using test::breaks;

TEST_CASE("what callers of a group's operations guarantee") {
  test::MemoryHub hub(2, 1);
  const auto links = hub.links(0);
  std::array<std::byte, 6> bytes{};
  const std::span<std::byte> all(bytes);
  const auto gather = [&] { gather_all(*links, all.first(2), all); };
  CHECK(breaks("room for the bytes of every member", gather));
  CHECK(breaks("the root is a member", [&] { spread(*links, all, 2); }));
  const auto send_all = [&](std::vector<std::size_t> sent, std::vector<std::size_t> received) {
    return [&, sent, received] { exchange(*links, all, sent, all, received); };
  };
  CHECK(breaks("a count of each member", send_all({6}, {3, 3})));
  CHECK(breaks("the counts are those of the bytes", send_all({3, 4}, {3, 3})));
  CHECK(breaks("what a member sends to itself arrives", send_all({2, 4}, {3, 3})));
  RemoteGroup group(hub.links(1));
  CHECK(breaks("whole numbers", [&] { group.allreduce(all, DType::float32, Reduction::sum); }));
}

TEST_CASE("what callers of links guarantee") {
  TcpLinks links(0, std::vector<std::optional<MemberLinks>>(1), nullptr);
  std::array<std::byte, 1> bytes{};
  CHECK(breaks("another member", [&] { links.send(0, bytes); }));
  CHECK(breaks("another member", [&] { links.receive(1, bytes); }));
  CHECK(breaks("something is posted", [&] { links.advance(); }));
  CHECK(breaks("connections to all members but the own one",
               [&] { TcpLinks(0, std::vector<std::optional<MemberLinks>>(2), nullptr); }));
  const auto form = [](int rank, std::size_t names) {
    return [rank, names] {
      LinkOptions options;
      options.names.resize(names);
      LinkListener listener("127.0.0.1");
      const std::vector<std::string> texts{listener.text()};
      form_links(std::move(listener), options, rank, texts, std::chrono::seconds(1), {});
    };
  };
  CHECK(breaks("the rank is of the group", form(1, 0)));
  CHECK(breaks("a name for every member", form(0, 2)));
}

}  // namespace
}  // namespace dpwa::collectives
