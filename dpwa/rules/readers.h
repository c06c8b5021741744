#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"

namespace dpwa {

// The identity of a caller that asks for a snapshot, as far as it is proven. Where names are not
// proven, callers of one name are told apart by their network, so that one cannot harm the standing
// of another.
struct Caller {
  std::string account;   // its name and network; the name alone where a certificate proves it
  std::string network;   // that it calls from
  std::string standing;  // whose stalls are counted together
  bool is_known = false;

  // A node that shows its certificate, or one of the cluster file that calls from where that has
  // it.
  static Caller known(const std::string& account, const std::string& network) {
    return {account, network, "node " + account, true};
  }
  static Caller stranger(const std::string& account, const std::string& network) {
    return {account, network, "network " + network, false};
  }
};

// Knows the callers that are being sent a snapshot, and those that may have one. Each reader holds
// a buffer of the snapshot pool; two that hold different old ones keep the node from publishing. So
// the number of concurrent replies is bounded: in all, per network (three quarters of all) and per
// caller. A caller that held a buffer although the reply did not arrive whole is told BUSY for
// three times as long as it held the buffer. If it stalls repeatedly, this time doubles with each
// stall, up to a minute; simultaneous stalls count as one. Known callers are judged one by one, and
// a whole reply ends the pause. All other callers of one network are judged together, because names
// cost a caller nothing, and each whole reply takes back one stall. Both expire with time. Pure:
// the time is an argument. One thread.
class Readers {
 public:
  static constexpr std::uint32_t per_peer = 2;  // a caller may have given up one that goes on here
  static constexpr Duration longest_pause = std::chrono::minutes(1);

  // How long a caller's stalls are remembered after its pause, and for how many idle callers.
  static constexpr Duration memory = longest_pause;
  static constexpr std::size_t max_remembered = 4096;

  static constexpr Duration stall = std::chrono::milliseconds(250);  // broken links end sooner

  explicit Readers(std::uint32_t most) : most_(most) {}

  // Whether it may be sent a snapshot now.
  bool may_begin(const Caller& caller, TimePoint now) const;
  void begin(const Caller& caller);
  // `held`: for how long. `whole`: the reply arrived in full. Of one that began; does not throw.
  void end(const Caller& caller, Duration held, bool whole, TimePoint now);

  std::uint32_t in_flight() const { return in_flight_; }
  std::size_t accounts() const { return accounts_.size(); }  // for tests

 private:
  struct Account {
    std::uint32_t in_flight = 0;
    unsigned stalls = 0;                   // in a row
    TimePoint stalled = TimePoint::min();  // last
    TimePoint busy_until = TimePoint::min();
  };
  using Counts = std::map<std::string, std::uint32_t>;
  void forget_idle(TimePoint now);

  const std::uint32_t most_;
  std::uint32_t in_flight_ = 0;
  Counts of_caller_;   // replies in flight, by account
  Counts of_network_;  // likewise
  // The callers that are reading, or whose replies did not arrive whole, by their standing.
  std::map<std::string, Account> accounts_;
  TimePoint next_forgetting_ = TimePoint::min();
};

}  // namespace dpwa
