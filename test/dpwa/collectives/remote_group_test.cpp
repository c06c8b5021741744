#include "dpwa/collectives/remote_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "dpwa/collectives/allreduces.h"
#include "dpwa/collectives/reduce.h"
#include "test/dpwa/collectives/memory_links.h"
#include "test/dpwa/collectives/numbers.h"
#include "test/support/eventually.h"
#include "test/support/sanitized.h"

namespace dpwa::collectives {
namespace {

using test::as_type;
using test::combined;
using test::MemoryHub;
using test::small_numbers;
using Bytes = std::vector<std::byte>;

constexpr int most_members = test::sanitized ? 5 : 9;

// What each member has when all have run `body`, each on a thread of its own.
std::vector<Bytes> run_members(int size, std::uint64_t seed,
                               const std::function<Bytes(Links& links)>& body) {
  MemoryHub hub(size, seed);
  std::vector<Bytes> results(static_cast<std::size_t>(size));
  test::at_once(results.size(), [&](std::size_t rank) {
    const auto links = hub.links(static_cast<int>(rank));
    results[rank] = body(*links);
  });
  return results;
}

std::vector<Bytes> run_group(int size, std::uint64_t seed,
                             const std::function<Bytes(Group& group)>& body) {
  MemoryHub hub(size, seed, std::size_t{64} << 10);
  std::vector<Bytes> results(static_cast<std::size_t>(size));
  test::at_once(results.size(), [&](std::size_t rank) {
    RemoteGroup group(hub.links(static_cast<int>(rank)));
    results[rank] = body(group);
  });
  return results;
}

// The all-reduces, with chunks that are small beside the data.
struct Algorithm {
  const char* name;
  std::function<void(Links&, const Numbers&, AlignedBuffer&)> run;
};
const std::vector<Algorithm>& ways() {
  static const auto& all = *new std::vector<Algorithm>{
      {"whole", allreduce_whole},
      {"parts", [](Links& links, const Numbers& numbers,
                   AlignedBuffer& scratch) { allreduce_in_parts(links, numbers, 128, scratch); }},
      {"ring", [](Links& links, const Numbers& numbers, AlignedBuffer& scratch) {
         allreduce_by_ring(links, numbers, 128, scratch);
       }}};
  return all;
}

Bytes first_bytes(int size, int rank, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i * 3 + static_cast<std::size_t>(rank * 17 + size));
  return bytes;
}

TEST_CASE("every all-reduce gives what a plain loop gives, for all types, reductions and sizes") {
  for (const Algorithm& way : ways()) {
    for (int size = 2; size <= most_members; ++size) {
      for (const DType type : test::all_types) {
        for (const Reduction reduction : test::all_reductions) {
          const std::size_t count = 301 + static_cast<std::size_t>(size);
          CAPTURE(way.name);
          CAPTURE(size);
          CAPTURE(name_of(type));
          CAPTURE(static_cast<int>(reduction));
          const auto results = run_members(size, 1, [&](Links& links) {
            Bytes data = as_type(type, small_numbers(count, links.rank()));
            AlignedBuffer scratch;
            way.run(links, {data, type, reduction}, scratch);
            return data;
          });
          std::vector<int> expected = combined(reduction, type, count, size);
          if (type == DType::boolean) {
            for (int& number : expected) number = std::min(number, 1);
          }
          for (const Bytes& result : results) CHECK(result == as_type(type, expected));
        }
      }
    }
  }
}

TEST_CASE("an all-reduce may be smaller than the members are many, or have odd counts") {
  for (const Algorithm& way : ways()) {
    for (int size = 2; size <= most_members; ++size) {
      for (const std::size_t count : {1UL, 2UL, 15UL, 16UL, 17UL, 97UL, 128UL, 1001UL}) {
        CAPTURE(way.name);
        CAPTURE(size);
        CAPTURE(count);
        const auto results = run_members(size, count, [&](Links& links) {
          Bytes data = as_type(DType::int32, small_numbers(count, links.rank()));
          AlignedBuffer scratch;
          way.run(links, {data, DType::int32, Reduction::sum}, scratch);
          return data;
        });
        const Bytes expected =
            as_type(DType::int32, combined(Reduction::sum, DType::int32, count, size));
        for (const Bytes& result : results) CHECK(result == expected);
      }
    }
  }
}

TEST_CASE("all members have the same bits, those of the order of ranks unless by the ring") {
  for (int size = 2; size <= most_members; ++size) {
    const std::size_t count = 777;
    std::vector<Bytes> inputs;
    std::vector<const std::byte*> pointers;
    for (int rank = 0; rank < size; ++rank) inputs.push_back(test::any_floats(count, rank));
    for (const Bytes& input : inputs) pointers.push_back(input.data());
    Bytes in_order(count * sizeof(float));
    reduce(DType::float32, Reduction::sum, pointers, in_order.data(), count);
    for (const Algorithm& way : ways()) {
      CAPTURE(way.name);
      CAPTURE(size);
      const auto results = run_members(size, 3, [&](Links& links) {
        Bytes data = inputs[static_cast<std::size_t>(links.rank())];
        AlignedBuffer scratch;
        way.run(links, {data, DType::float32, Reduction::sum}, scratch);
        return data;
      });
      for (const Bytes& result : results) CHECK(result == results.front());
      if (std::string_view(way.name) != "ring") CHECK(results.front() == in_order);
    }
  }
}

TEST_CASE("the group chooses a way for every size, and leaves data of no bytes alone") {
  for (const int size : {1, 2, 3, 4, 7}) {
    for (const std::size_t count : {0UL, 1UL, 1000UL, 40'001UL, 200'003UL}) {
      CAPTURE(size);
      CAPTURE(count);
      const auto results = run_group(size, count, [&](Group& group) {
        Bytes data = as_type(DType::float32, small_numbers(count, group.rank()));
        group.allreduce(data, DType::float32, Reduction::sum);
        return data;
      });
      const Bytes expected =
          as_type(DType::float32, combined(Reduction::sum, DType::float32, count, size));
      for (const Bytes& result : results) CHECK(result == expected);
    }
  }
}

TEST_CASE("an all-gather has the bytes of every member, in the order of ranks") {
  for (int size = 1; size <= 2 * most_members; ++size) {
    for (const std::size_t count : {0UL, 1UL, 100UL, 40'000UL}) {
      Bytes expected;
      for (int rank = 0; rank < size; ++rank) {
        const Bytes own = first_bytes(size, rank, count);
        expected.insert(expected.end(), own.begin(), own.end());
      }
      CAPTURE(size);
      CAPTURE(count);
      const auto results = run_group(size, 5, [&](Group& group) {
        Bytes all(count * static_cast<std::size_t>(size));
        group.allgather(first_bytes(size, group.rank(), count), all);
        return all;
      });
      for (const Bytes& result : results) CHECK(result == expected);
    }
  }
}

TEST_CASE("a broadcast gives the bytes of any root to all") {
  for (int size = 1; size <= most_members; ++size) {
    for (int root = 0; root < size; ++root) {
      for (const std::size_t count : {0UL, 1UL, 1000UL, 2'000'003UL}) {
        if (count > 1000 && root % 3 != 0) continue;
        CAPTURE(size);
        CAPTURE(root);
        CAPTURE(count);
        const auto results = run_group(size, 5, [&](Group& group) {
          Bytes data = first_bytes(size, group.rank(), count);
          group.broadcast(data, root);
          return data;
        });
        for (const Bytes& result : results) CHECK(result == first_bytes(size, root, count));
      }
    }
  }
}

TEST_CASE("an all-to-all brings each member what the others have for it, of any size") {
  const auto bytes_between = [](int from, int to) {
    return static_cast<std::size_t>((from * 5 + to * 3) % 4 * 50);
  };
  for (int size = 1; size <= most_members; ++size) {
    const auto results = run_group(size, 9, [&](Group& group) {
      std::vector<std::size_t> sent, received;
      for (int peer = 0; peer < size; ++peer) {
        sent.push_back(bytes_between(group.rank(), peer));
        received.push_back(bytes_between(peer, group.rank()));
      }
      Bytes from;
      for (int peer = 0; peer < size; ++peer)
        from.insert(from.end(), sent[static_cast<std::size_t>(peer)],
                    static_cast<std::byte>(group.rank() * 16 + peer));
      Bytes into(std::accumulate(received.begin(), received.end(), std::size_t{0}));
      group.alltoall(from, sent, into, received);
      return into;
    });
    for (int rank = 0; rank < size; ++rank) {
      Bytes expected;
      for (int peer = 0; peer < size; ++peer)
        expected.insert(expected.end(), bytes_between(peer, rank),
                        static_cast<std::byte>(peer * 16 + rank));
      CAPTURE(size);
      CHECK(results[static_cast<std::size_t>(rank)] == expected);
    }
  }
}

TEST_CASE("a barrier returns once all members have come") {
  for (int size = 1; size <= 2 * most_members; ++size) {
    std::atomic<int> there = 0;
    const auto results = run_group(size, 4, [&](Group& group) {
      Bytes seen;
      for (int round = 1; round <= 3; ++round) {
        ++there;
        group.barrier();
        seen.push_back(static_cast<std::byte>(there.load() >= round * size ? 1 : 0));
        group.barrier();
      }
      return seen;
    });
    CAPTURE(size);
    for (const Bytes& seen : results) CHECK(seen == Bytes(3, std::byte{1}));
  }
}

// All kinds of operations, one after the other.
void run_some(Group& group) {
  const auto size = static_cast<std::size_t>(group.size());
  for (const std::size_t count : {3UL, 400UL, 40'000UL}) {
    Bytes data(count * sizeof(float));
    group.allreduce(data, DType::float32, Reduction::sum);
    group.broadcast(data, static_cast<int>(count) % group.size());
    Bytes all(data.size() * size);
    group.allgather(data, all);
    const std::vector<std::size_t> counts(size, count);
    Bytes from(count * size), into(count * size);
    group.alltoall(from, counts, into, counts);
    group.barrier();
  }
}

TEST_CASE("a stream that ends at any byte ends the operation of every member") {
  const int seeds = test::sanitized ? 60 : 400;
  for (int seed = 0; seed < seeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const int size = 2 + static_cast<int>(random.below(5));
    MemoryHub hub(size, static_cast<std::uint64_t>(seed), 256 + random.below(100'000));
    const int from = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    const int to =
        (from + 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(size - 1)))) % size;
    // Few bytes as often as many.
    hub.end_after(from, to, random.below(std::size_t{1} << random.below(19)));
    std::vector<int> lost(static_cast<std::size_t>(size), -2);
    test::at_once(lost.size(), [&](std::size_t rank) {
      RemoteGroup group(hub.links(static_cast<int>(rank)));
      try {
        for (int round = 0; round < 1000; ++round) run_some(group);
      } catch (const GroupBroken& broken) {
        lost[rank] = broken.lost();
        CHECK_THROWS_AS(group.barrier(), GroupBroken);
        CHECK(group.lost() == from);
      }
    });
    CAPTURE(seed);
    CHECK(lost == std::vector<int>(static_cast<std::size_t>(size), from));
  }
}

TEST_CASE("an abort ends the operations of all members, which learn who is to blame") {
  for (int size = 2; size <= most_members; ++size) {
    MemoryHub hub(size, 8);
    std::vector<int> lost(static_cast<std::size_t>(size), -2);
    test::at_once(lost.size(), [&](std::size_t rank) {
      RemoteGroup group(hub.links(static_cast<int>(rank)));
      if (rank == 0) {
        group.abort(1);
        group.abort(0);
        lost[rank] = group.lost();
        return;
      }
      try {
        group.barrier();
      } catch (const GroupBroken& broken) {
        lost[rank] = broken.lost();
      }
    });
    CHECK(lost == std::vector<int>(static_cast<std::size_t>(size), 1));
  }
}

TEST_CASE("a member that never comes breaks the group after the time limit") {
  MemoryHub hub(2, 1);
  RemoteGroup group(hub.links(0));
  group.set_timeout(std::chrono::milliseconds(1));
  CHECK_THROWS_AS(group.barrier(), GroupBroken);
  CHECK(group.lost() == -1);
}

}  // namespace
}  // namespace dpwa::collectives
