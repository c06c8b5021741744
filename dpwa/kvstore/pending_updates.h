#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/kvstore/round.h"

namespace dpwa::kvstore {

// The updates of a slice that its backup has not stored yet, and who waits until it has. Pure.
class PendingUpdates {
 public:
  bool empty() const { return updates_.empty(); }
  std::size_t size() const { return updates_.size(); }
  void clear() { updates_.clear(); }
  // The backup has to store this version before these are answered. `round_before`: the first round
  // that was open before the update.
  void add(std::uint64_t version, std::uint64_t round_before, std::vector<Waiter> waiters);
  // One that is answered once all of them are stored. They are not empty.
  void wait(const Waiter& waiter);
  // The first round that was open before all of them; none: there are none.
  std::optional<std::uint64_t> round_before() const;
  // The backup has stored this version: whom to answer.
  std::vector<Waiter> stored(std::uint64_t version);

 private:
  struct Update {
    std::uint64_t version = 0;
    std::uint64_t round_before = 0;
    std::vector<Waiter> waiters;
  };
  std::vector<Update> updates_;
};

}  // namespace dpwa::kvstore
