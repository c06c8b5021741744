#include "dpwa/gossip/sharing_choice.h"

#include <doctest/doctest.h>

using namespace dpwa;

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
