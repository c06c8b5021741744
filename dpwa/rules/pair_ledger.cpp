#include "dpwa/rules/pair_ledger.h"

#include <algorithm>
#include <cmath>

namespace dpwa {
namespace {

// In pulls. Nodes of one pace differ by chance; the slack lets them.
constexpr double slack = 2;
// From the slack on, the chance to be asked falls to 0 over so many pulls.
constexpr double ramp = 4;
// A node that nobody pulls from for so many rounds gives nothing that could be kept even: it can
// call and cannot be called, perhaps. It takes what it gets.
constexpr std::uint64_t lonely_rounds = 200;

constexpr double units = 1024;

}  // namespace

PairLedger::PairLedger(double factor) : factor_(factor) {}

std::uint16_t PairLedger::stated_to(PeerId peer) const {
  const Account* account = accounts_.find(peer);
  if (account == nullptr) return 0;
  return static_cast<std::uint16_t>(std::llround(account->taken * units));
}

void PairLedger::heard(PeerId peer, std::uint64_t incarnation, std::uint16_t stated) {
  rounds_since_heard_ = 0;
  Account& known = account(peer, incarnation);
  if (known.heard) {
    const auto more = static_cast<std::uint16_t>(stated - *known.heard);
    add(known, more / units);
  }
  known.heard = stated;
}

void PairLedger::took(PeerId peer, std::uint64_t incarnation, double share) {
  Account& known = account(peer, incarnation);
  const double weight = factor_ * share;
  known.taken += weight;
  add(known, -weight);
}

bool PairLedger::passes_over(PeerId peer, Random& random) const {
  const double chance = acceptance(peer);
  return chance < 1 && !random.bernoulli(chance);
}

double PairLedger::acceptance(PeerId peer) const {
  if (accounts_.find(peer) == nullptr || rounds_since_heard_ > lonely_rounds) return 1;
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
  }
  return known;
}

// Bounded on either side, so that no debt takes long to be made good.
void PairLedger::add(Account& account, double weight) const {
  const double bound = (slack + ramp) * factor_;
  account.balance = std::clamp(account.balance + weight, -bound, bound);
}

}  // namespace dpwa
