#include "dpwa/rules/pair_ledger.h"

#include <algorithm>
#include <cmath>

#include "dpwa/base/invariant.h"

namespace dpwa {
namespace {

// In pulls. A difference of up to this many is chance between nodes of equal pace: no effect.
constexpr double slack = 2;
// Beyond the slack, the chance to be asked falls to 0 over this many pulls.
constexpr double ramp = 4;
// After this many rounds in which no peer has pulled from this node, its accounts have no effect.
// Such a node can probably call others and not be called, so the two directions cannot be equal.
constexpr std::uint64_t lonely_rounds = 200;
// The same for one pair: after this many rounds for each peer in which this one has stated nothing.
// So nodes that can call others and be called only by one another stay a part of the whole, and two
// nodes that each wait for the other go on. A peer that is 100 times slower states something every
// 100 rounds for each peer, in the mean.
constexpr std::uint64_t lonely_rounds_each = 400;

constexpr double units = 1024;

}  // namespace

PairLedger::PairLedger(double factor) : factor_(factor) {
  DPWA_INVARIANT(factor > 0 && factor <= 1, "accounts are of pulls with a factor", factor);
}

std::uint16_t PairLedger::stated_to(PeerId peer) const {
  const Account* account = accounts_.find(peer);
  if (account == nullptr) return 0;
  return static_cast<std::uint16_t>(std::llround(account->taken * units));
}

void PairLedger::refused(PeerId peer, std::uint64_t incarnation) {
  account(peer, incarnation).taken += 2 * bound();
}

void PairLedger::begin_round(std::size_t peers) {
  ++round_;
  lonely_rounds_ = lonely_rounds_each * peers;
}

void PairLedger::heard(PeerId peer, std::uint64_t incarnation, std::uint16_t stated) {
  Account& known = account(peer, incarnation);
  heard_in_ = known.heard_in = round_;
  if (known.heard) {
    const auto more = static_cast<std::uint16_t>(stated - *known.heard);
    add(known, more / units);
  }
  known.heard = stated;
}

void PairLedger::took(PeerId peer, std::uint64_t incarnation, double share, double scale) {
  DPWA_INVARIANT(share >= 0 && share <= 1 && scale >= 0 && scale <= 1,
                 "a blend is of a share of the model, by at most the factor", share, scale, peer);
  Account& known = account(peer, incarnation);
  const bool owes = known.balance > slack * factor_;
  const double weight = factor_ * share * (owes ? 1 : scale);
  known.taken += weight;
  add(known, -weight);
}

bool PairLedger::passes_over(PeerId peer, Random& random) const {
  const double chance = acceptance(peer);
  return chance < 1 && !random.bernoulli(chance);
}

double PairLedger::acceptance(PeerId peer) const {
  const Account* account = accounts_.find(peer);
  if (account == nullptr || round_ - heard_in_ > lonely_rounds) return 1;
  if (round_ - account->heard_in > lonely_rounds_) return 1;
  return std::clamp(1 + (balance(peer) + slack) / ramp, 0.0, 1.0);
}

double PairLedger::balance(PeerId peer) const {
  const Account* account = accounts_.find(peer);
  return account == nullptr ? 0 : account->balance / factor_;
}

void PairLedger::settle_all() {
  for (const auto& entry : accounts_.entries()) accounts_.find(entry.peer)->balance = 0;
}

PairLedger::Account& PairLedger::account(PeerId peer, std::uint64_t incarnation) {
  Account& known = accounts_[peer];
  if (known.incarnation != incarnation) {
    known.incarnation = incarnation;
    known.balance = 0;
    known.heard.reset();
    known.heard_in = round_;
  }
  return known;
}

double PairLedger::bound() const {
  return (slack + ramp) * factor_;
}

// Bounded in both directions, so that every debt is settled soon.
void PairLedger::add(Account& account, double weight) const {
  account.balance = std::clamp(account.balance + weight, -bound(), bound());
  DPWA_INVARIANT(std::abs(account.balance) <= bound(), "a balance is within its bound",
                 account.balance, weight);
}

}  // namespace dpwa
