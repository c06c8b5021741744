#include "dpwa/gossip/parallel_pass.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

using namespace dpwa;

namespace {

constexpr std::uint64_t piece = ParallelPass::piece_bytes;

}  // namespace

TEST_CASE("a pass visits every byte once, whatever the number of threads and the size") {
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    ParallelPass passes(threads);
    CHECK(passes.threads() == std::max(1u, threads));
    for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, piece - 1, piece,
                                       piece + 1, 3 * piece, 7 * piece + 64}) {
      CAPTURE(threads);
      CAPTURE(length);
      std::vector<std::uint8_t> visits(length + 192);
      passes.run({64, length}, [&visits](ByteRange part) {
        for (std::uint64_t at = part.offset; at < part.end(); ++at) ++visits[at];
      });
      CHECK(std::ranges::count(visits, 1) == static_cast<std::ptrdiff_t>(length));
      CHECK(std::ranges::count(visits, 0) == 192);
      CHECK(std::ranges::count(std::span(visits).subspan(64, length), 1) ==
            static_cast<std::ptrdiff_t>(length));
    }
  }
}

TEST_CASE("pieces begin a multiple of the piece size into the range") {
  ParallelPass passes(3);
  std::mutex mutex;
  std::set<std::uint64_t> offsets;
  passes.run({128, 4 * piece + 1}, [&](ByteRange part) {
    const std::lock_guard lock(mutex);
    offsets.insert(part.offset);
  });
  const std::set<std::uint64_t> expected = {128, 128 + piece, 128 + 2 * piece, 128 + 3 * piece,
                                            128 + 4 * piece};
  CHECK(offsets == expected);
}

TEST_CASE("helpers take part in a pass") {
  ParallelPass passes(2);
  std::mutex mutex;
  std::condition_variable joined;
  std::set<std::thread::id> threads;
  // Each piece waits for a second thread: the caller alone would wait for ever.
  passes.run({0, 2 * piece}, [&](ByteRange) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    joined.notify_all();
    joined.wait(lock, [&] { return threads.size() == 2; });
  });
  CHECK(threads.size() == 2);
}

TEST_CASE("a pass ends with all its pieces done, however often one follows another") {
  ParallelPass passes(3);
  std::vector<int> values(4);
  for (int round = 1; round <= 300; ++round) {
    passes.run({0, 4 * piece}, [&](ByteRange part) { values[part.offset / piece] += 1; });
    REQUIRE(values == std::vector<int>(4, round));
  }
}

namespace {

// How many of `passes` are shared when they cost so much alone and shared.
int shared_of(SharingChoice& choice, int passes, double alone, double shared) {
  int count = 0;
  for (int i = 0; i < passes; ++i) {
    const bool share = choice.share();
    choice.took(share ? shared : alone);
    count += share;
  }
  return count;
}

}  // namespace

TEST_CASE("a pass is tried both ways first, alone and then shared") {
  SharingChoice choice;
  CHECK_FALSE(choice.share());
  choice.took(1);
  CHECK(choice.share());
}

TEST_CASE("the faster way is taken, but for one pass in a period") {
  constexpr int periods = 10;
  constexpr int passes = periods * static_cast<int>(SharingChoice::retry_every);
  SharingChoice sharing_pays;
  shared_of(sharing_pays, 2, 2, 1);
  CHECK(shared_of(sharing_pays, passes, 2, 1) == passes - periods);
  SharingChoice sharing_costs;
  shared_of(sharing_costs, 2, 1, 2);
  CHECK(shared_of(sharing_costs, passes, 1, 2) == periods);
}

TEST_CASE("one slow pass does not settle the matter, and a change is followed") {
  SharingChoice choice;
  shared_of(choice, 2, 2, 100);  // the shared one was unlucky
  shared_of(choice, 20 * static_cast<int>(SharingChoice::retry_every), 2, 1);
  CHECK(shared_of(choice, 15, 2, 1) >= 14);
  shared_of(choice, 20 * static_cast<int>(SharingChoice::retry_every), 1, 2);
  CHECK(shared_of(choice, 15, 1, 2) <= 1);
}
