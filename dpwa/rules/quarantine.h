#pragma once

#include <cstdint>
#include <optional>

#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// Which peers are not asked for a while, because they sent what must not be blended several times
// with nothing sound between. Each quarantine of a peer is twice as long as the one before, up to a
// maximum; behaving for twice its length makes it forgotten. Nobody stays for ever: afterwards a
// peer is asked again, and one offence more leads back at once, a sound answer ends the suspicion.
// A restart does not: a liar would restart. Pure: time is an argument. One owner, one thread.
class Quarantine {
 public:
  explicit Quarantine(const FirewallOptions& options);

  // Until when the peer is not to be asked, if this offence was one too many. `deliberate`: it can
  // be nobody's fault but the peer's. Bytes that were damaged on the way may be; they never make
  // the next quarantine longer. `shortest`: that a quarantine is to last, whatever the options say.
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
  Duration length(std::uint32_t level, Duration shortest) const;
  void forgive(Record& record, TimePoint now, Duration shortest) const;

  const std::uint32_t after_;
  const Duration first_;
  const Duration longest_;
  PerPeer<Record> records_;  // of those that have offended
};

}  // namespace dpwa
