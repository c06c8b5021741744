#include "dpwa/collectives/shared_group.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/collectives/link_greeting.h"
#include "dpwa/collectives/link_socket.h"
#include "dpwa/collectives/reduce.h"
#include "test/dpwa/collectives/numbers.h"
#include "test/dpwa/collectives/shared_members.h"
#include "test/support/eventually.h"
#include "test/support/sanitized.h"

namespace dpwa::collectives {
namespace {

using test::as_type;
using test::combined;
using test::run_shared;
using test::small_numbers;
using Bytes = std::vector<std::byte>;

// Fewer than the members: all wait for the first.
constexpr std::size_t crowded = 1;
constexpr std::size_t roomy = 64;

Bytes bytes_of_rank(int rank, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(rank) * 31);
  return bytes;
}

// Numbers in the memory that the group lends.
std::span<std::byte> lent(const std::shared_ptr<std::byte>& memory, const Bytes& bytes) {
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  return {memory.get(), bytes.size()};
}

// Below one buffer, some buffers and a part, more than the places of the board.
const std::size_t counts[] = {1, 77, 5000, 300'001, test::sanitized ? 30'001 : 1'000'003};

TEST_CASE("members of one host combine all types, in the bits of the order of ranks") {
  for (const DType type : test::all_types) {
    for (const Reduction reduction : test::all_reductions) {
      CAPTURE(name_of(type));
      CAPTURE(static_cast<int>(reduction));
      for (const std::size_t count : {33UL, 90'001UL}) {
        const auto results = run_shared(3, crowded, [&](SharedGroup& group) {
          Bytes data = as_type(type, small_numbers(count, group.rank()));
          group.allreduce(data, type, reduction);
          return data;
        });
        std::vector<int> expected = combined(reduction, type, count, 3);
        if (type == DType::boolean) {
          for (int& number : expected) number = std::min(number, 1);
        }
        for (const Bytes& result : results) CHECK(result == as_type(type, expected));
      }
    }
  }
}

TEST_CASE("wherever the numbers lie, and however large they are, the bits are the same") {
  for (const std::size_t processors : {crowded, roomy}) {
    for (const std::size_t count : counts) {
      CAPTURE(count);
      constexpr int size = 4;
      std::vector<Bytes> inputs;
      std::vector<const std::byte*> pointers;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(test::any_floats(count, rank));
      for (const Bytes& input : inputs) pointers.push_back(input.data());
      Bytes expected(count * sizeof(float));
      reduce(DType::float32, Reduction::sum, pointers, expected.data(), count);
      // Of the members below it the numbers lie in lent memory.
      for (int lenders = 0; lenders <= size; ++lenders) {
        CAPTURE(lenders);
        const auto results = run_shared(size, processors, [&](SharedGroup& group) {
          const Bytes& input = inputs[static_cast<std::size_t>(group.rank())];
          const auto memory = group.allocate(input.size());
          Bytes own = input;
          Bytes result;
          for (int time = 0; time < 6; ++time) {
            const bool lends = group.rank() < lenders;
            const std::span<std::byte> data = lends ? lent(memory, input) : std::span(own = input);
            group.allreduce(data, DType::float32, Reduction::sum);
            result.assign(data.begin(), data.end());
          }
          return result;
        });
        for (const Bytes& result : results) CHECK(result == expected);
      }
    }
  }
}

TEST_CASE("gathering, broadcasting and exchanging rows between members of one host") {
  constexpr int size = 4;
  for (const std::size_t bytes : {0UL, 1UL, 100UL, 3'000'001UL}) {
    CAPTURE(bytes);
    Bytes all;
    for (int rank = 0; rank < size; ++rank) {
      const Bytes one = bytes_of_rank(rank, bytes);
      all.insert(all.end(), one.begin(), one.end());
    }
    for (const Bytes& result : run_shared(size, crowded, [&](SharedGroup& group) {
           Bytes into(all.size());
           group.allgather(bytes_of_rank(group.rank(), bytes), into);
           return into;
         }))
      CHECK(result == all);
    for (int root = 0; root < size; ++root) {
      for (const Bytes& result : run_shared(size, roomy, [&](SharedGroup& group) {
             Bytes data = bytes_of_rank(group.rank(), bytes);
             group.broadcast(data, root);
             return data;
           }))
        CHECK(result == bytes_of_rank(root, bytes));
    }
  }
}

TEST_CASE("every member sends other numbers of bytes to every other one") {
  constexpr int size = 4;
  const auto count = [](int from, int to) {
    return static_cast<std::size_t>(from == to ? 0 : 400'000 * from + 77 * to);
  };
  const auto piece = [&](int from, int to) {
    return bytes_of_rank(10 * from + to, count(from, to));
  };
  const auto results = run_shared(size, crowded, [&](SharedGroup& group) {
    std::vector<std::size_t> sent, received;
    Bytes from;
    for (int other = 0; other < size; ++other) {
      sent.push_back(count(group.rank(), other));
      received.push_back(count(other, group.rank()));
      const Bytes bytes = piece(group.rank(), other);
      from.insert(from.end(), bytes.begin(), bytes.end());
    }
    Bytes into(std::accumulate(received.begin(), received.end(), std::size_t{0}));
    group.alltoall(from, sent, into, received);
    return into;
  });
  for (int rank = 0; rank < size; ++rank) {
    Bytes expected;
    for (int other = 0; other < size; ++other) {
      const Bytes bytes = piece(other, rank);
      expected.insert(expected.end(), bytes.begin(), bytes.end());
    }
    CHECK(results[static_cast<std::size_t>(rank)] == expected);
  }
}

TEST_CASE("an abort ends the operation of every member, which knows who is to blame") {
  for (const std::size_t processors : {crowded, roomy}) {
    const auto members = test::shared_members(3, processors);
    std::vector<std::future<int>> lost;
    for (const int rank : {0, 2}) {
      lost.push_back(std::async(std::launch::async, [&, rank] {
        try {
          Bytes data(100'000);
          members[static_cast<std::size_t>(rank)]->allreduce(data, DType::uint8, Reduction::max);
        } catch (const GroupBroken& broken) {
          return broken.lost();
        }
        return -2;
      }));
    }
    members[0]->abort(1);
    for (auto& each : lost) CHECK(each.get() == 1);
    CHECK_THROWS_AS(members[1]->barrier(), GroupBroken);
    CHECK(members[1]->lost() == 1);
  }
}

TEST_CASE("who waits for longer than the limit gives the group up") {
  const auto members = test::shared_members(2, crowded);
  members[1]->set_timeout(std::chrono::milliseconds(1));
  CHECK_THROWS_AS(members[1]->barrier(), GroupBroken);
  // It is of no use to anybody then: late data would be taken for that of the next operation.
  CHECK_THROWS_AS(members[1]->barrier(), GroupBroken);
  CHECK_THROWS_AS(members[0]->barrier(), GroupBroken);
}

namespace {

std::vector<std::optional<LinkSocket>> socket_to_second(int descriptor) {
  std::vector<std::optional<LinkSocket>> sockets(2);
  sockets[1].emplace(FileDescriptor(descriptor));
  return sockets;
}

}  // namespace

TEST_CASE("a member that has left in order ends the operations that wait for it, not the others") {
  const auto members = test::shared_members(2, roomy);
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const FileDescriptor other(ends[1]);
  std::atomic<bool> told = false;
  members[0]->watch(socket_to_second(ends[0]), [&](int) { told = true; });
  auto arrived = std::async(std::launch::async, [&] { members[1]->barrier(); });
  members[0]->barrier();
  arrived.get();
  const auto farewell = LinkNews{}.encode();
  REQUIRE(::send(other.get(), farewell.data(), farewell.size(), 0) ==
          static_cast<ssize_t>(farewell.size()));
  CHECK_THROWS_AS(members[0]->barrier(), GroupBroken);
  CHECK_FALSE(told);
}

TEST_CASE("a socket that ends with anything but a farewell is the end of its member") {
  for (const std::string_view last : {"", "x", "fare"}) {
    CAPTURE(last);
    const auto members = test::shared_members(2, crowded);
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    std::promise<int> lost;
    members[0]->watch(socket_to_second(ends[0]), [&](int rank) { lost.set_value(rank); });
    {
      const FileDescriptor other(ends[1]);
      REQUIRE(::send(other.get(), last.data(), last.size(), 0) ==
              static_cast<ssize_t>(last.size()));
    }
    CHECK(lost.get_future().get() == 1);
    CHECK_THROWS_AS(members[0]->barrier(), GroupBroken);
  }
}

TEST_CASE("members that say other than they should end the operation, not the process") {
  const auto members = test::shared_members(2, roomy);
  auto other = std::async(std::launch::async, [&] {
    const std::size_t sent[] = {5, 0};
    const std::size_t received[] = {3, 0};
    Bytes from(5), into(3);
    CHECK_THROWS_AS(members[1]->alltoall(from, sent, into, received), GroupBroken);
  });
  const std::size_t sent[] = {0, 4};
  const std::size_t received[] = {0, 4};
  Bytes from(4), into(4);
  CHECK_THROWS_AS(members[0]->alltoall(from, sent, into, received), GroupBroken);
  other.get();
}

TEST_CASE("memory is given back, and found again") {
  const auto memory = LentMemory::create();
  REQUIRE(memory != nullptr);
  auto first = memory->allocate(5'000'000);
  auto second = memory->allocate(100);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  const std::byte* const place = first.get();
  CHECK(memory->offset_of({first.get(), 10}).has_value());
  Bytes elsewhere(10);
  CHECK_FALSE(memory->offset_of(elsewhere).has_value());
  const auto blocks = [&] {
    struct stat facts {};
    ::fstat(memory->descriptor(), &facts);
    return facts.st_blocks * 512;
  };
  std::memset(first.get(), 1, 5'000'000);
  CHECK(blocks() >= 5'000'000);
  first.reset();
  CHECK(blocks() < 5'000'000);
  CHECK(memory->allocate(1'000'000).get() == place);
  CHECK(memory->allocate(~std::size_t{0}) == nullptr);
  CHECK(memory->allocate(memory->file()->size()) == nullptr);
}

}  // namespace
}  // namespace dpwa::collectives
