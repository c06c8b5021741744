#include "dpwa/rules/pair_ledger.h"

#include <doctest/doctest.h>

using dpwa::PairLedger;
using dpwa::Random;

namespace {

constexpr dpwa::PeerId peer = 3;
constexpr std::uint64_t process = 7;  // its incarnation

void take(PairLedger& ledger, int pulls) {
  for (int i = 0; i < pulls; ++i) ledger.took(peer, process, 1);
}

}  // namespace

TEST_CASE("a peer is asked freely until it is the slack of two pulls behind") {
  PairLedger ledger(0.5);
  CHECK(ledger.acceptance(peer) == 1);
  take(ledger, 2);
  CHECK(ledger.acceptance(peer) == 1);
  take(ledger, 1);
  CHECK(ledger.acceptance(peer) == doctest::Approx(0.75));
  take(ledger, 2);
  CHECK(ledger.acceptance(peer) == doctest::Approx(0.25));
}

TEST_CASE("a peer that is six pulls behind is passed over always") {
  PairLedger ledger(0.5);
  Random random(1);
  take(ledger, 6);
  CHECK(ledger.acceptance(peer) == 0);
  for (int i = 0; i < 100; ++i) CHECK(ledger.passes_over(peer, random));
}

TEST_CASE("the chance that is drawn is the acceptance") {
  PairLedger ledger(0.5);
  Random random(1);
  take(ledger, 4);
  int asked = 0;
  for (int i = 0; i < 10000; ++i) asked += ledger.passes_over(peer, random) ? 0 : 1;
  CHECK(asked == doctest::Approx(5000).epsilon(0.03));
}

TEST_CASE("what a peer states that it has taken makes it be asked again") {
  PairLedger ledger(0.5);
  ledger.heard(peer, process, 0);
  take(ledger, 6);
  ledger.heard(peer, process, 2 * 512);
  CHECK(ledger.acceptance(peer) == doctest::Approx(0.5));
  ledger.heard(peer, process, 4 * 512);
  CHECK(ledger.acceptance(peer) == 1);
}

TEST_CASE("what is stated to a peer adds up to what the other side counts") {
  PairLedger ours(0.5), theirs(0.5);
  theirs.heard(peer, process, ours.stated_to(peer));
  for (int i = 0; i < 1000; ++i) {
    ours.took(peer, process, 1.0 / 3);  // wraps around after 64 units
    theirs.heard(peer, process, ours.stated_to(peer));
    theirs.took(peer, process, 1.0 / 3);
    REQUIRE(theirs.acceptance(peer) == 1);
  }
  for (int i = 0; i < 15; ++i) theirs.took(peer, process, 1.0 / 3);
  CHECK(theirs.acceptance(peer) == doctest::Approx(0.25).epsilon(0.02));
}

TEST_CASE("an account is bounded on either side") {
  PairLedger ledger(0.5);
  ledger.heard(peer, process, 0);
  take(ledger, 1000);
  ledger.heard(peer, process, 4 * 512);
  CHECK(ledger.acceptance(peer) == 1);
  for (std::uint16_t stated = 4 * 512; stated < 60000; stated += 512)
    ledger.heard(peer, process, stated);
  take(ledger, 12);
  CHECK(ledger.acceptance(peer) == 0);
}

// Else a peer that this node clips would have to wait for it, and would come no nearer.
TEST_CASE("what is clipped is owed, unless the peer has taken more already than the slack") {
  PairLedger ledger(0.5);
  ledger.heard(peer, process, 0);
  ledger.took(peer, process, 1, 0.25);
  CHECK(ledger.balance(peer) == doctest::Approx(-0.25));
  CHECK(ledger.stated_to(peer) == 128);
  ledger.heard(peer, process, 1280);  // 2.5 pulls
  ledger.took(peer, process, 0.5, 0.25);
  CHECK(ledger.balance(peer) == doctest::Approx(2.25 - 0.5));
  CHECK(ledger.stated_to(peer) == 128 + 256);
  ledger.took(peer, process, 0.5, 0.25);
  CHECK(ledger.balance(peer) == doctest::Approx(1.75 - 0.125));
}

TEST_CASE("a peer that was restarted begins with an even account") {
  PairLedger ledger(0.5);
  ledger.heard(peer, process, 5000);
  take(ledger, 6);
  ledger.heard(peer, process + 1, 100);
  CHECK(ledger.acceptance(peer) == 1);
  ledger.took(peer, process + 2, 1);
  ledger.heard(peer, process + 2, 40000);  // the first statement counts for nothing
  for (int i = 0; i < 5; ++i) ledger.took(peer, process + 2, 1);
  CHECK(ledger.acceptance(peer) == 0);
}

TEST_CASE("accounts are even once the own parameters are replaced") {
  PairLedger ledger(0.5);
  take(ledger, 6);
  ledger.settle_all();
  CHECK(ledger.acceptance(peer) == 1);
  CHECK(ledger.stated_to(peer) == 6 * 512);  // it goes on from there
}

TEST_CASE("a node that nobody pulls from takes what it gets") {
  PairLedger ledger(0.5);
  take(ledger, 6);
  for (int i = 0; i < 200; ++i) ledger.begin_round(3);
  CHECK(ledger.acceptance(peer) == 0);
  ledger.begin_round(3);
  CHECK(ledger.acceptance(peer) == 1);
  ledger.heard(peer + 1, process, 0);  // from anybody
  CHECK(ledger.acceptance(peer) == 0);
}

TEST_CASE("a debt to a peer that states nothing, while others do, is forgotten after long") {
  PairLedger ledger(0.5);
  ledger.heard(peer, process, 0);
  take(ledger, 6);
  for (int i = 0; i < 3 * 400; ++i) {
    ledger.begin_round(3);
    ledger.heard(peer + 1, process, 0);
    CHECK(ledger.acceptance(peer) == 0);
  }
  ledger.begin_round(3);
  ledger.heard(peer + 1, process, 0);
  CHECK(ledger.acceptance(peer) == 1);
  ledger.heard(peer, process, 512);
  CHECK(ledger.acceptance(peer) == doctest::Approx(0.25));
  ledger.heard(peer, process + 1, 0);
  for (int i = 0; i < 6; ++i) ledger.took(peer, process + 1, 1);
  CHECK(ledger.acceptance(peer) == 0);
}

TEST_CASE("a peer at another place of the table has an account of its own") {
  PairLedger ledger(0.5);
  take(ledger, 6);
  CHECK(ledger.acceptance(peer + 1) == 1);
  ledger.forget(peer);
  CHECK(ledger.acceptance(peer) == 1);
  CHECK(ledger.stated_to(peer) == 0);
}
