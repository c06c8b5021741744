#include "dpwa/kvstore/round.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "dpwa/kvstore/compression.h"
#include "dpwa/snapshot/finite.h"

namespace dpwa::kvstore {
namespace {

// The mean of no gradient, 0 / 0, in the type of the computation.
Bytes mean_of_nothing(const SliceShape& shape) {
  const DType wide = computed_in(shape.dtype);
  Bytes mean(shape.elements * size_of(wide));
  const auto fill = [&](auto nan) {
    for (std::size_t at = 0; at < mean.size(); at += sizeof nan)
      std::memcpy(&mean[at], &nan, sizeof nan);
  };
  if (wide == DType::float64) {
    fill(std::numeric_limits<double>::quiet_NaN());
  } else {
    fill(std::numeric_limits<float>::quiet_NaN());
  }
  return mean;
}

}  // namespace

Bytes Round::empty_sum() const {
  return Bytes(shape_.elements * size_of(computed_in(shape_.dtype)));
}

bool Round::add(const MemberId& from, Push message) {
  snapshot_ = std::max(snapshot_, message.snapshot);
  begun_in_ = std::min(begun_in_, message.begun_in);
  averages_ &= message.merge == Merge::mean && message.optimizer.empty();
  if (!message.lent.bytes.empty()) {
    lent_.push_back({from, {message.compression, message.content(), message.weight}, message.lent});
  } else if (add_owned(message)) {
    weight_ += message.weight;
  } else {
    absent_.insert(from);
    return false;
  }
  if (leader_.empty() || from.name < leader_) {
    leader_ = from.name;
    merge_ = message.merge;
    optimizer_ = std::move(message.optimizer);
  }
  counted_.insert(from);
  return true;
}

// A part that is not finite must not change the sum. If part and sum have the same type, this takes
// one pass, and a second one only for parts that are not finite.
bool Round::add_owned(Push& message) {
  const DType dtype = shape_.dtype;
  const Contribution part{message.compression, message.values, message.weight};
  const bool one_type = part.type == Compression::none && computed_in(dtype) == dtype;
  if (sum_.empty() && one_type && part.weight == 1) {
    if (!is_finite(dtype, message.values)) return false;
    sum_ = std::move(message.values);
    return true;
  }
  Bytes sum = empty_sum();
  if (sum_.empty() || !one_type) {
    if (!add_up(dtype, sum, {&part, 1})) return false;
    if (sum_.empty()) {
      sum_ = std::move(sum);
    } else {
      finite_ = add_up(dtype, sum_, {&part, 1}, true);
    }
    return true;
  }
  const std::array both{Contribution{Compression::none, sum_, 1}, part};
  const bool finite = add_up(dtype, sum, both);
  if (!finite && finite_) {
    Bytes alone = empty_sum();
    if (!add_up(dtype, alone, {&part, 1})) return false;
  }
  finite_ = finite;
  sum_ = std::move(sum);
  return true;
}

void Round::wait(Waiter waiter) {
  std::erase_if(waiters_, [&](const Waiter& old) { return old.worker == waiter.worker; });
  waiters_.push_back(std::move(waiter));
}

Round::Closed Round::close(std::uint64_t step) {
  Closed closed;
  Forward& change = closed.change;
  change.round = step + 1;
  change.snapshot = snapshot_;
  change.optimizer = std::move(optimizer_);
  change.gradient = gradient(change.scale);
  // A value that is a mean must not stay that of an earlier round: its workers would apply it
  // again.
  if (change.gradient.empty() && averages_ && change.optimizer.empty()) {
    change.gradient = mean_of_nothing(shape_);
    change.scale = 1;
  }
  for (const MemberId& worker : counted_) change.advances.push_back({worker, step + 1});
  for (const MemberId& worker : absent_) change.advances.push_back({worker, step + 1});
  closed.waiters = std::move(waiters_);
  closed.refused = refused_;
  return closed;
}

// The sum of all contributions. Whether it is finite.
bool Round::add_up_lent(Bytes& total) const {
  std::vector<Contribution> parts;
  for (const Lent& part : lent_) parts.push_back(part.values);
  total = sum_.empty() ? empty_sum() : dpwa::copy_of(sum_);
  return add_up(shape_.dtype, total, parts, !sum_.empty());
}

// The sum of what counts, and the factor that makes a mean of it; empty: no update. The sum shows
// whether all lent parts are finite, so they are checked one by one only when it is not.
Bytes Round::gradient(double& scale) {
  DPWA_INVARIANT(weight_ >= 0, "a sum of weights is not negative", weight_);
  const auto torn = [](const Lent& part) { return !part.memory.intact(); };
  const auto not_finite = [&](const Lent& part) {
    Bytes alone = empty_sum();
    return !add_up(shape_.dtype, alone, {&part.values, 1});
  };
  // Once the parts have been looked at and are finite, but their sum is not: no update.
  bool looked = lent_.empty();
  std::vector<Bytes> copies;
  while (!counted_.empty()) {
    Bytes total;
    const bool finite = lent_.empty() ? finite_ : add_up_lent(total);
    if (std::ranges::any_of(lent_, torn)) {
      leave_out(torn);
      looked = lent_.empty();
    } else if (finite) {
      double weight = weight_;
      for (const Lent& part : lent_) weight += part.values.weight;
      const bool is_mean = merge_ == Merge::mean;
      if (is_mean && weight == 0) return {};  // of nothing: no worker had a gradient
      scale = is_mean ? 1 / weight : 1;
      return lent_.empty() ? std::move(sum_) : std::move(total);
    } else if (looked) {
      leave_out_all();
    } else {
      // Their owners may write to them meanwhile.
      for (Lent& part : lent_)
        part.values.bytes = copies.emplace_back(dpwa::copy_of(part.values.bytes));
      leave_out(not_finite);
      looked = true;
    }
  }
  return {};
}

void Round::leave_out(const std::function<bool(const Lent&)>& which) {
  std::erase_if(lent_, [&](const Lent& part) {
    if (!which(part)) return false;
    ++refused_;
    const std::size_t counted = counted_.erase(part.worker);
    DPWA_INVARIANT(counted == 1, "a part that is left out was counted", part.worker.name);
    absent_.insert(part.worker);
    for (Waiter& waiter : waiters_) {
      if (waiter.worker == part.worker.name) waiter.kind = AnswerKind::not_finite;
    }
    return true;
  });
}

// The parts are finite, and their sum is not.
void Round::leave_out_all() {
  refused_ += counted_.size();
  absent_.merge(counted_);
  for (Waiter& waiter : waiters_) waiter.kind = AnswerKind::not_finite;
}

}  // namespace dpwa::kvstore
