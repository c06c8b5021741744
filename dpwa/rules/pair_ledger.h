#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dpwa/base/invariant.h"
#include "dpwa/base/random.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// Keeps one-sided pulls from moving the mean of all nodes when their paces differ
// (docs/ALGORITHMS.md, "The pair ledger"; a rule of this project).
//
// A pull moves only the node that pulls. A slow node blends its peers rarely and is blended by them
// often, so that all models move towards its own. Therefore each node keeps an account of every
// peer: the factors with which the peer has blended this node's parameters, minus the factors with
// which this node has blended the peer's. The lower the account of a peer, the more often another
// peer is asked instead, until both directions are equal. A peer states in its own pulls how much
// it has taken; the accounts need no other message.
//
// The decision is drawn, instead of the factor scaled, so that the versions that are taken of a
// slow peer are of every age, as its own pulls find this node's. A scaled factor takes all of them
// when they are fresh, and the clocks of the nodes then run fast (1.06 of the steps with one of
// four nodes 16 times slower, instead of 1.01).
//
// Pure: randomness is an argument. One owner, one thread.
class PairLedger {
 public:
  // `factor`: with which every pull is blended, in (0, 1].
  explicit PairLedger(double factor);
  // Smaller ones are lost in the units of the statements.
  static constexpr double least_factor = 1.0 / 256;

  // What is stated to a peer: the sum of the factors with which it has been blended, in units of
  // 1/1024, modulo 2^16.
  std::uint16_t stated_to(PeerId peer) const;

  // The peer, of this incarnation, stated that in a pull.
  void heard(PeerId peer, std::uint64_t incarnation, std::uint16_t stated);
  // Parameters of the peer, of this incarnation, have been blended. `share`: of the model that was
  // pulled; `scale`: of the factor that was applied, below 1 where it was clipped. What was clipped
  // away is not counted: this node takes it later. It is counted all the same when the peer has
  // taken more than this node by the slack, because this node does not manage to take as much, and
  // the peer must not have to wait for it.
  void took(PeerId peer, std::uint64_t incarnation, double share, double scale = 1);

  // Parameters of the peer, of this incarnation, are too far away to be blended. So that the peer
  // can come nearer by blending this node, it is granted as many pulls as an account can hold.
  void refused(PeerId peer, std::uint64_t incarnation);

  // A round of pulls begins, among so many peers.
  void begin_round(std::size_t peers);
  // Whether the peer is to be passed over in this round.
  bool passes_over(PeerId peer, Random& random) const;
  // The chance that it is not, in [0, 1].
  double acceptance(PeerId peer) const;
  // What the peer has taken more than this node, in pulls of the whole model; within ±6.
  double balance(PeerId peer) const;

  void forget(PeerId peer) { accounts_.erase(peer); }
  // The own parameters have been replaced, so earlier blends no longer count.
  void settle_all();

 private:
  friend struct InvariantTest<PairLedger>;
  struct Account {
    std::uint64_t incarnation = 0;       // 0: not known yet
    double taken = 0;                    // by this node, of the peer
    double balance = 0;                  // what the peer has taken more than this node
    std::optional<std::uint16_t> heard;  // what the peer stated last
    std::uint64_t heard_in = 0;          // the round of that, or of the first blend
  };

  Account& account(PeerId peer, std::uint64_t incarnation);
  double bound() const;  // of a balance
  void add(Account& account, double weight) const;

  const double factor_;
  PerPeer<Account> accounts_;  // of those that were pulled from or have pulled
  std::uint64_t round_ = 0;
  std::uint64_t heard_in_ = 0;       // from anybody
  std::uint64_t lonely_rounds_ = 0;  // of a pair
};

}  // namespace dpwa
