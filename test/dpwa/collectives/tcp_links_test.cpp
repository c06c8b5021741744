#include "dpwa/collectives/tcp_links.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/collectives/remote_group.h"
#include "test/dpwa/collectives/numbers.h"
#include "test/dpwa/collectives/tcp_members.h"
#include "test/support/certificates.h"
#include "test/support/eventually.h"
#include "test/support/raw_socket.h"

namespace dpwa::collectives {
namespace {

using test::TcpMembers;
using Bytes = std::vector<std::byte>;

Bytes sum_of(std::size_t count, int size) {
  return test::as_type(DType::float32, test::combined(Reduction::sum, DType::float32, count, size));
}

// The sum of as many numbers of all members, as this one gets it.
Bytes sum(Group& group, std::size_t count) {
  Bytes data = test::as_type(DType::float32, test::small_numbers(count, group.rank()));
  group.allreduce(data, DType::float32, Reduction::sum);
  return data;
}

// Runs all operations on each member, and compares.
void check_operations(TcpMembers& members) {
  const int size = members.size();
  std::atomic<int> wrong = 0;
  members.run([&](std::unique_ptr<TcpLinks> links) {
    RemoteGroup group(std::move(links));
    for (const std::size_t count : {1UL, 1000UL, 40'001UL, 1'000'003UL}) {
      if (sum(group, count) != sum_of(count, size)) ++wrong;
      Bytes data = group.rank() == 0 ? sum_of(count, 2) : Bytes(count * sizeof(float));
      group.broadcast(data, 0);
      if (data != sum_of(count, 2)) ++wrong;
      Bytes all(static_cast<std::size_t>(size) * count);
      group.allgather(Bytes(count, static_cast<std::byte>(group.rank())), all);
      for (std::size_t i = 0; i < all.size(); i += count)
        if (all[i] != static_cast<std::byte>(i / count)) ++wrong;
      const std::vector<std::size_t> counts(static_cast<std::size_t>(size), count);
      const Bytes from = all;
      group.alltoall(from, counts, all, counts);
      if (all != Bytes(all.size(), static_cast<std::byte>(group.rank()))) ++wrong;
      group.barrier();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("members over plain TCP compute together, at any size") {
  for (const int size : {1, 2, 3, 5}) {
    TcpMembers members(size);
    check_operations(members);
  }
}

TEST_CASE("members that share a key compute over TLS") {
  const test::SecretFolder folder;
  const Keys keys{new_key()};
  for (const int size : {2, 4}) {
    TcpMembers members(size);
    for (LinkOptions& options : members.options) options.security = test::opened(folder, keys);
    check_operations(members);
  }
}

TEST_CASE("an abort in mid-operation ends it on all members, with the rank to blame") {
  constexpr int size = 4;
  TcpMembers members(size);
  std::vector<std::promise<int>> told(size);
  for (std::size_t rank = 0; rank < size; ++rank)
    members.on_broken[rank] = [&told, rank](int lost) { told[rank].set_value(lost); };
  std::vector<int> lost(size, -2);
  members.run([&](std::unique_ptr<TcpLinks> links) {
    TcpLinks& of_group = *links;
    RemoteGroup group(std::move(links));
    const auto rank = static_cast<std::size_t>(group.rank());
    std::thread aborting;
    try {
      group.barrier();  // which others may still be in when the abort comes
      // The third member takes no part, so that the others wait for it.
      if (rank == 0) aborting = std::thread([&group] { group.abort(2); });
      if (rank != 2) sum(group, 1'000'000);
      test::eventually([&] { return of_group.is_broken(); });
      group.barrier();
    } catch (const GroupBroken& broken) {
      lost[rank] = broken.lost();
    }
    if (aborting.joinable()) aborting.join();
    CHECK(group.lost() == 2);
    told[rank].get_future().wait();
  });
  CHECK(lost == std::vector<int>(size, 2));
}

TEST_CASE("the end of a member is noticed in an operation, and by members that do nothing") {
  constexpr int size = 3;
  TcpMembers members(size);
  members.dying = 1;
  std::vector<std::promise<int>> told(size);
  for (std::size_t rank = 0; rank < size; ++rank)
    members.on_broken[rank] = [&told, rank](int lost) { told[rank].set_value(lost); };
  std::vector<int> lost(size, -2);
  members.run([&](std::unique_ptr<TcpLinks> links) {
    RemoteGroup group(std::move(links));
    const auto rank = static_cast<std::size_t>(group.rank());
    if (rank == 2) CHECK(told[rank].get_future().get() == 1);
    try {
      group.barrier();
    } catch (const GroupBroken& broken) {
      lost[rank] = broken.lost();
    }
    if (rank == 0) CHECK(told[rank].get_future().get() == 1);
  });
  CHECK(lost == std::vector<int>{1, -2, 1});
}

TEST_CASE("an operation that needs a member which has left in order ends") {
  TcpMembers members(2);
  std::atomic<int> lost = -2;
  members.run([&](std::unique_ptr<TcpLinks> links) {
    RemoteGroup group(std::move(links));
    group.barrier();
    if (group.rank() == 1) return;
    try {
      group.barrier();
    } catch (const GroupBroken& broken) {
      CHECK(std::string(broken.what()) == "rank 1 has left the group");
      lost = broken.lost();
    }
  });
  CHECK(lost == 1);
}

TEST_CASE("members that leave in order break nothing") {
  TcpMembers members(3);
  std::atomic<int> broken = 0;
  for (auto& each : members.on_broken) each = [&](int) { ++broken; };
  members.run([&](std::unique_ptr<TcpLinks> links) {
    RemoteGroup group(std::move(links));
    CHECK(sum(group, 100'000) == sum_of(100'000, 3));
  });
  CHECK(broken == 0);
}

TEST_CASE("a member that does not come breaks the operation of the others after the time limit") {
  TcpMembers members(2);
  std::vector<std::string> what(2);
  members.run([&](std::unique_ptr<TcpLinks> links) {
    const auto rank = static_cast<std::size_t>(links->rank());
    TcpLinks& of_group = *links;
    RemoteGroup group(std::move(links));
    group.set_timeout(std::chrono::milliseconds(1));
    try {
      if (rank == 0) group.barrier();
      test::eventually([&] { return of_group.is_broken(); });
      of_group.check();
    } catch (const GroupBroken& broken) {
      what[rank] = broken.what();
    }
  });
  CHECK(what[0] == "no byte has moved for 0.0 s; awaited: rank 1 (to send)");
  CHECK(what[1] == "rank 0 has ended the group");
}

}  // namespace
}  // namespace dpwa::collectives
