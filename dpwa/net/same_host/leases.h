#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "dpwa/base/time.h"

namespace dpwa::same_host {

// What this process has lent over one connection: kept as it is until the other end has read it.
// When one of them is overdue(), the connection is to be closed, which ends all of them. Pure.
class Leases {
 public:
  // `memory` is kept until then. The number of the lease: 1, 2, ...
  std::uint64_t lend(std::shared_ptr<const void> memory, std::size_t bytes, TimePoint until) {
    leases_.push_back({std::move(memory), bytes, until});
    bytes_ += bytes;
    return ++last_;
  }
  // The other end has read all up to this number.
  void release(std::uint64_t last) {
    for (; !leases_.empty() && last_ - leases_.size() < last; leases_.pop_front())
      bytes_ -= leases_.front().bytes;
  }
  std::size_t bytes() const { return bytes_; }  // that are lent
  bool overdue(TimePoint now) const { return !leases_.empty() && leases_.front().until <= now; }

 private:
  struct Lease {
    std::shared_ptr<const void> memory;
    std::size_t bytes = 0;
    TimePoint until{};
  };
  std::deque<Lease> leases_;  // in the order of their numbers
  std::uint64_t last_ = 0;    // number
  std::size_t bytes_ = 0;
};

}  // namespace dpwa::same_host
