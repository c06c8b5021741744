#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "dpwa/core/time.h"

namespace dpwa {

// Who is being sent a snapshot, and who may have one. Each reader holds a buffer of the snapshot
// pool; two that hold different old ones keep the node from publishing. So there is a bound on
// replies at once, in all and per peer, and a peer that held a buffer in vain (the reply did not
// arrive whole) is told BUSY for three times as long as it held it, and when it stalls again and
// again for twice that each time, up to a minute; a whole reply ends this, and so does time. Pure:
// the time is an argument. One thread.
class Readers {
 public:
  static constexpr std::uint32_t per_peer = 2;  // a caller may have given up one that goes on here
  static constexpr Duration longest_pause = std::chrono::minutes(1);

  // Beyond its pause a peer's stalls are remembered for so long, and those of so many idle peers:
  // names cost a caller nothing.
  static constexpr Duration memory = longest_pause;
  static constexpr std::size_t max_remembered = 4096;

  static constexpr Duration stall = std::chrono::milliseconds(250);  // broken links end sooner

  explicit Readers(std::uint32_t most) : most_(most) {}

  // Whether `peer` may be sent a snapshot now. Callers without a name are one peer.
  bool may_begin(const std::string& peer, TimePoint now) const;
  void begin(const std::string& peer);
  // `held`: for how long. `whole`: the reply arrived in full.
  void end(const std::string& peer, Duration held, bool whole, TimePoint now);

  std::uint32_t in_flight() const { return in_flight_; }
  std::size_t accounts() const { return accounts_.size(); }

 private:
  struct Account {
    std::uint32_t in_flight = 0;
    unsigned stalls = 0;  // in a row
    TimePoint busy_until = TimePoint::min();
  };
  void forget_idle(TimePoint now);

  const std::uint32_t most_;
  std::uint32_t in_flight_ = 0;
  std::map<std::string, Account> accounts_;  // of peers that read or held in vain; others have none
  TimePoint next_forgetting_ = TimePoint::min();
};

}  // namespace dpwa
