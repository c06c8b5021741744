#include "dpwa/parallel/shared_cursor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "dpwa/base/random.h"

using namespace dpwa;

namespace {

// How often each position was taken.
class Taken {
 public:
  explicit Taken(std::uint64_t end) : times_(end) {}
  void add(const ItemRange& part) {
    for (std::uint64_t i = part.from; i < part.end(); ++i) ++times_.at(i);
  }
  bool each_once() const {
    return std::ranges::all_of(times_, [](int times) { return times == 1; });
  }

 private:
  std::vector<int> times_;
};

}  // namespace

TEST_CASE("members take neighbouring parts of a step, and share out what is left at the end") {
  SharedCursor cursor(10, 75);
  CHECK(cursor.part(0, 3).from == 0);
  CHECK(cursor.part(2, 3).from == 20);
  CHECK(cursor.part(2, 3).count == 10);
  cursor.advance(3);
  cursor.advance(3);
  CHECK(cursor.position() == 60);
  CHECK(cursor.part(0, 4).count == 4);  // 15 samples for 4 members
  CHECK(cursor.part(3, 4).count == 3);
  CHECK(cursor.part(3, 4).end() == 75);
  cursor.advance(4);
  CHECK(cursor.ended());
  CHECK(cursor.part(0, 4).count == 0);
  cursor.advance(4);
  CHECK(cursor.position() == 75);
}

TEST_CASE("no part is below the least size, if need be by leaving members without samples") {
  SharedCursor cursor(8, 5, 2);
  CHECK(cursor.part(0, 4).count == 3);
  CHECK(cursor.part(1, 4).count == 2);
  CHECK(cursor.part(2, 4).count == 0);
  CHECK(cursor.part(3, 4).count == 0);
}

TEST_CASE("every sample is taken once, whatever number of members each step has") {
  Random random(8);
  for (int run = 0; run < 300; ++run) {
    const std::uint64_t end = 1 + random.below(2000);
    const std::uint64_t batch = 1 + random.below(40);
    const std::uint64_t least = 1 + random.below(2);
    Taken taken(end);
    // As many as there may be; those that are away take no part, and come back with the position
    // of the others.
    std::vector<SharedCursor> members(9, SharedCursor(batch, end, least));
    std::uint64_t position = 0;
    while (position < end) {
      const std::uint64_t size = 1 + random.below(members.size());
      std::uint64_t smallest = ~0ULL, largest = 0;
      for (std::uint64_t rank = 0; rank < size; ++rank) {
        SharedCursor& member = members[rank];
        member.seek(position);
        const ItemRange part = member.part(rank, size);
        taken.add(part);
        if (part.count > 0) smallest = std::min(smallest, part.count);
        largest = std::max(largest, part.count);
        member.advance(size);
        REQUIRE(member.position() == members.front().position());
      }
      CHECK(largest <= std::max(batch, 2 * std::min(least, batch) - 1));
      CHECK(largest - smallest <= 1);
      REQUIRE(members.front().position() > position);
      position = members.front().position();
    }
    CHECK(taken.each_once());
  }
}
