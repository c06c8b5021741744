#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/step_report.h"

namespace dpwa {

// One round of the Tx thread: ask a peer; when that fails, the next one, until one answers or the
// one deadline of the round has passed. Every peer is asked at most once a round.
//   round.begin(now, deadline);
//   while (auto peer = round.next_peer(table, now, random)) {
//     ... try it: on success round.succeeded(); break;  on failure round.failed(*peer, why, ...);
//   }
//   round.outcome()
// Pure: time and randomness are arguments. One owner, one thread.
class PullRound {
 public:
  // `only`: ask this peer alone, backing off or not.
  void begin(TimePoint now, Duration timeout, std::optional<PeerId> only = std::nullopt);

  // The peer to try now; none when the round is over (answered, out of time, or out of peers).
  std::optional<PeerId> next_peer(const PeerTable& table, TimePoint now, Random& random);
  // `same_host`: through the peer's memory, not over the network.
  void succeeded(PeerTable& table, const Progress& progress, TimePoint now, bool same_host = false);
  void failed(PeerTable& table, PeerFailure failure, TimePoint now, Random& random);

  TimePoint deadline() const { return deadline_; }
  std::optional<PeerId> current() const { return current_; }
  // The outcome of the whole round: mixed once a peer answered; otherwise the most telling failure:
  // timed_out, then rejected, unreachable, stale, busy, not_ready. Skipped when nobody could be
  // asked; but where that is because no peer answers, the most telling of their last failures.
  Outcome outcome() const;

 private:
  AnswerTime answer(TimePoint now) const;
  void note(PeerFailure failure);

  TimePoint deadline_{};
  Duration timeout_{};
  TimePoint asked_{};  // the current peer
  std::optional<PeerId> only_;
  std::vector<PeerId> tried_;
  std::optional<PeerId> current_;
  bool answered_ = false;
  std::optional<PeerFailure> worst_;
};

// The blocks of one peer's latest known version that have been blended already. A version is
// blended at most once a block: asking with known_version() makes the peer answer NOT_MODIFIED
// instead of sending the same parameters again, and repeats() detects a peer that sends them
// nevertheless. Pure; one per peer.
class SeenBlocks {
 public:
  // The incarnation of the process that the blocks were taken from; 0 = none taken yet.
  std::uint64_t incarnation() const { return incarnation_; }

  // The version to state when asking for `block` (0 to 63); 0 = nothing to state.
  std::uint64_t known_version(std::uint64_t incarnation, unsigned block) const {
    return incarnation == incarnation_ && has(block) ? version_ : 0;
  }

  // Whether this version was taken already, or is older than one that was. A sound peer never sends
  // such a version: its versions grow, and it was told the last one.
  bool repeats(std::uint64_t incarnation, std::uint64_t version, unsigned block) const {
    if (incarnation != incarnation_ || version > version_) return false;
    return version < version_ || has(block);
  }

  void took(std::uint64_t incarnation, std::uint64_t version, unsigned block) {
    if (incarnation != incarnation_ || version != version_) {
      incarnation_ = incarnation;
      version_ = version;
      blocks_ = 0;
    }
    blocks_ |= bit_of(block);
  }
  void took_all(std::uint64_t incarnation, std::uint64_t version) {
    incarnation_ = incarnation;
    version_ = version;
    blocks_ = ~std::uint64_t{0};
  }

 private:
  static std::uint64_t bit_of(unsigned block) {
    DPWA_INVARIANT(block < max_blocks, "what has been seen is a block of the model", block);
    return std::uint64_t{1} << block;
  }
  bool has(unsigned block) const { return (blocks_ & bit_of(block)) != 0; }

  std::uint64_t incarnation_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace dpwa
