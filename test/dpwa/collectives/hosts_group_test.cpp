#include "dpwa/collectives/hosts_group.h"
#include "dpwa/collectives/form_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "dpwa/collectives/form_group.h"
#include "test/dpwa/collectives/memory_links.h"
#include "test/dpwa/collectives/numbers.h"
#include "test/dpwa/collectives/shared_members.h"
#include "test/support/eventually.h"

namespace dpwa::collectives {
namespace {

using test::as_type;
using test::combined;
using test::small_numbers;
using Bytes = std::vector<std::byte>;
using Hosts = std::vector<std::vector<int>>;

std::vector<std::unique_ptr<HostsGroup>> members_on(const Hosts& hosts, test::MemoryHub& hub,
                                                    int size) {
  std::vector<std::unique_ptr<HostsGroup>> members(static_cast<std::size_t>(size));
  for (const std::vector<int>& host : hosts) {
    auto local = test::shared_members(static_cast<int>(host.size()), 1);
    for (std::size_t place = 0; place < host.size(); ++place) {
      members[static_cast<std::size_t>(host[place])] = std::make_unique<HostsGroup>(
          hosts, hub.links(host[place]), std::move(local[place]), std::make_shared<HostsBreak>());
    }
  }
  return members;
}

std::vector<Bytes> run_hosts(const Hosts& hosts, const std::function<Bytes(Group&)>& body) {
  int size = 0;
  for (const auto& host : hosts) size += static_cast<int>(host.size());
  test::MemoryHub hub(size, 7, std::size_t{64} << 10);
  const auto members = members_on(hosts, hub, size);
  std::vector<Bytes> results(members.size());
  test::at_once(members.size(), [&](std::size_t rank) { results[rank] = body(*members[rank]); });
  return results;
}

// The ranks of a host need not follow one another.
const Hosts many_hosts[] = {{{0, 1}, {2, 3}}, {{0, 3, 4}, {1}, {2}}, {{0}, {1, 2}}};

TEST_CASE("members on several hosts combine, gather and broadcast as on one") {
  for (const Hosts& hosts : many_hosts) {
    int size = 0;
    for (const auto& host : hosts) size += static_cast<int>(host.size());
    for (const std::size_t count : {1UL, 100UL, 70'001UL}) {
      CAPTURE(size);
      CAPTURE(count);
      const Bytes expected =
          as_type(DType::float32, combined(Reduction::sum, DType::float32, count, size));
      Bytes all;
      for (int rank = 0; rank < size; ++rank) {
        const Bytes own = as_type(DType::float32, small_numbers(count, rank));
        all.insert(all.end(), own.begin(), own.end());
      }
      const auto results = run_hosts(hosts, [&](Group& group) {
        const Bytes own = as_type(DType::float32, small_numbers(count, group.rank()));
        Bytes sum = own;
        group.allreduce(sum, DType::float32, Reduction::sum);
        CHECK(sum == expected);
        group.barrier();
        Bytes gathered(all.size());
        group.allgather(own, gathered);
        CHECK(gathered == all);
        for (int root = 0; root < group.size(); ++root) {
          Bytes data = own;
          group.broadcast(data, root);
          CHECK(data == as_type(DType::float32, small_numbers(count, root)));
        }
        return sum;
      });
      for (const Bytes& result : results) CHECK(result == results.front());
    }
  }
}

TEST_CASE("members that share no memory are not said to be on hosts of their own") {
  CHECK(setting_words({1, 0}, false) == "memory of one host");
  CHECK(setting_words({0, 4}, true) == "TLS");
  CHECK(setting_words({1, 1}, false) == "memory of one host, TCP to 1 rank");
  CHECK(setting_words({2, 0}, true) == "memory on 2 hosts, TLS between them");
  CHECK(setting_words({2, 3}, false) == "memory on 2 hosts, TCP between them, TCP to 3 ranks");
}

TEST_CASE("an abort on one host ends the operations on all") {
  test::MemoryHub hub(4, 3);
  const auto members = members_on({{0, 1}, {2, 3}}, hub, 4);
  test::at_once(4, [&](std::size_t rank) {
    if (rank == 1) return members[rank]->abort(3);
    Bytes data(10'000);
    CHECK_THROWS_AS(members[rank]->allreduce(data, DType::uint8, Reduction::sum), GroupBroken);
  });
}

}  // namespace
}  // namespace dpwa::collectives
