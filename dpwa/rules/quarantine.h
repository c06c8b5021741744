#pragma once

#include <cstdint>
#include <optional>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The peers that are not asked for a while, because they sent parameters that must not be blended
// several times in a row. Each quarantine of a peer is twice as long as the one before, up to a
// maximum; after sound behaviour for twice its length it is forgotten. No quarantine lasts for
// ever: afterwards the peer is asked again. One more offence leads back at once; a sound answer
// ends the suspicion. A restart does not end it, because a liar would restart. Pure: time is an
// argument. One owner, one thread.
class Quarantine {
 public:
  static constexpr std::uint32_t after = 3;  // offences in a row

  explicit Quarantine(const FirewallOptions& options);

  // Returns until when the peer must not be asked, if this offence leads to a quarantine.
  // `deliberate`: only the peer can be at fault. Bytes damaged on the way are not the peer's fault;
  // they never make the next quarantine longer. `shortest`: the shortest quarantine, whatever the
  // options say.
  std::optional<TimePoint> offence(PeerId peer, bool deliberate, TimePoint now,
                                   Duration shortest = Duration::zero());
  void sound(PeerId peer);  // sent something sound

  struct Record {
    std::uint64_t offences = 0;     // in all
    std::uint64_t quarantines = 0;  // in all
    std::uint32_t in_a_row = 0;
    std::uint32_t level = 0;  // quarantines not forgotten yet
    TimePoint until = TimePoint::min();
  };
  // Another has this place.
  void forget(PeerId peer) { records_.erase(peer); }
  const Record& at(PeerId peer) const;

 private:
  friend struct InvariantTest<Quarantine>;
  Duration length(std::uint32_t level, Duration shortest) const;
  void forgive(Record& record, TimePoint now, Duration shortest) const;

  const Duration first_;
  const Duration longest_;
  PerPeer<Record> records_;  // of those that have offended
};

}  // namespace dpwa
