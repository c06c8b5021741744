#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/outcome.h"
#include "dpwa/rules/peer_table.h"

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
  // `only`: ask this peer alone, backing off or not. `neighbours`: choose among these; null: all.
  void begin(TimePoint now, Duration timeout, std::optional<PeerId> only = std::nullopt,
             std::shared_ptr<const std::vector<PeerId>> neighbours = nullptr);

  // The peer to try now; none when the round is over (answered, out of time, or out of peers).
  std::optional<PeerId> next_peer(const PeerTable& table, TimePoint now, Random& random);
  // `same_host`: through the peer's memory, not over the network.
  void succeeded(PeerTable& table, const Progress& progress, TimePoint now, bool same_host = false);
  void failed(PeerTable& table, PeerFailure failure, TimePoint now, Random& random);

  TimePoint deadline() const { return deadline_; }
  std::optional<PeerId> current() const { return current_; }
  // Of the whole round: mixed once a peer answered; otherwise the most telling failure: timed_out,
  // then rejected, unreachable, stale, busy, not_ready. Skipped when nobody could be asked; but
  // where that is because no peer answers, the most telling of their last failures.
  Outcome outcome() const;

 private:
  AnswerTime answer(TimePoint now) const;
  void note(PeerFailure failure);

  TimePoint deadline_{};
  Duration timeout_{};
  TimePoint asked_{};  // the current peer
  std::optional<PeerId> only_;
  std::shared_ptr<const std::vector<PeerId>> neighbours_;
  std::vector<PeerId> tried_;
  std::optional<PeerId> current_;
  bool answered_ = false;
  std::optional<PeerFailure> worst_;
};

}  // namespace dpwa
