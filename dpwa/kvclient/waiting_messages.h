#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>

#include "dpwa/kvstore/messages.h"

namespace dpwa::kvclient {

// The messages for one server that wait to be written: beats, votes and epochs first, then requests
// of slices, each in the order in which they came. One owner, one thread.
class WaitingMessages {
 public:
  struct Item {
    std::uint64_t tag = 0;
    kvstore::Message message;
  };
  static bool is_request(const kvstore::Message& message);
  // A push of this slice up to this step.
  static bool is_push(const kvstore::Message& message, const kvstore::SliceId& slice,
                      std::uint64_t step);

  // A request takes the place of one of its tag, so that it is written once.
  void add(std::uint64_t tag, kvstore::Message message);
  void drop_pushes(const kvstore::SliceId& slice, std::uint64_t step);
  void drop_requests();
  void drop_others() { first_.clear(); }

  bool empty() const { return first_.empty() && requests_.empty(); }
  const Item& next() const { return first_.empty() ? requests_.front() : first_.front(); }
  Item take();

 private:
  std::deque<Item> first_;
  std::deque<Item> requests_;
  std::unordered_set<std::uint64_t> tags_;  // of requests_
};

}  // namespace dpwa::kvclient
