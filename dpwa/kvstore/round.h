#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/kvstore/messages.h"

namespace dpwa::kvstore {

// Who waits for an answer, and for which.
struct Waiter {
  std::string worker;
  std::uint64_t tag = 0;
  AnswerKind kind = AnswerKind::counted;
  std::uint64_t step = 0;
  bool wants_value = false;
};

// Of the values of a slice.
struct SliceShape {
  DType dtype = DType::float32;
  std::size_t elements = 0;
};

// The pushes of all workers for one step of a slice, until they are one update: which of them
// count, and what they come to. A push that is not finite does not count, and its worker is absent;
// a part that is lent is read, and checked, when the round is closed. Pure.
class Round {
 public:
  explicit Round(const SliceShape& shape) : shape_(shape) {}

  // The first push of this worker. False: it is not finite.
  bool add(const MemberId& from, Push message);
  bool has(const MemberId& worker) const {
    return counted_.contains(worker) || absent_.contains(worker);
  }
  bool is_absent(const MemberId& worker) const { return absent_.contains(worker); }
  // The first epoch in which a step began to which one of its pushes belongs.
  std::uint64_t begun_in() const { return begun_in_; }

  // In place of an earlier one of its worker. Those that want no value have been answered, and are
  // answered once more if their push does not count after all.
  void wait(Waiter waiter);
  void forget_waiters() { waiters_.clear(); }

  struct Closed {
    Forward change;  // without epoch, slice and version
    std::vector<Waiter> waiters;
    std::size_t refused = 0;  // parts that were found not to count
  };
  // The end: the update of the step `step`.
  Closed close(std::uint64_t step);

 private:
  friend struct InvariantTest<Round>;
  struct Lent {
    MemberId worker;
    Contribution values;
    Loan memory;
  };

  bool add_owned(Push& message);
  Bytes gradient(double& scale);
  bool add_up_lent(Bytes& total) const;
  // Drops the parts of workers that took their memory back, and parts that are not finite.
  void leave_out(const std::function<bool(const Lent&)>& which);
  void leave_out_all();
  Bytes empty_sum() const;

  const SliceShape shape_;
  std::set<MemberId> counted_;
  std::set<MemberId> absent_;
  Bytes sum_;           // of the contributions that are not lent; empty: none
  bool finite_ = true;  // whether the parts of `sum_` are finite together
  double weight_ = 0;   // of all contributions in `sum_`
  std::vector<Lent> lent_;
  Merge merge_ = Merge::sum;
  bool averages_ = true;  // all pushes, also those that do not count, are for a plain mean
  std::string leader_;    // the first worker by name; its optimizer is used
  Bytes optimizer_;
  std::uint32_t snapshot_ = 0;  // the last snapshot that one of its workers knew of
  std::uint64_t begun_in_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<Waiter> waiters_;
  std::size_t refused_ = 0;
};

}  // namespace dpwa::kvstore
