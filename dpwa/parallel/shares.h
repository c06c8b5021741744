#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "dpwa/base/item_range.h"

namespace dpwa {

// The smallest number of equal devices that finish `batch` samples as soon as all `devices` would:
// ceil(B / ceil(B / D)). At least 1; 5 samples take 3 of 4 devices, because one device has 2
// anyway.
std::uint64_t fewest_devices(std::uint64_t batch, std::uint64_t devices);

// As many parts as possible, `parts` at most, none of which has less than `least` items; a total
// below `least` is one part. `least` is 2 for a model with BatchNorm, which needs two samples to
// measure a variance; at least 1.
std::uint64_t parts_of_at_least(std::uint64_t total, std::uint64_t parts, std::uint64_t least);

// The part of a batch that each device computes, with one entry for each device in use according to
// fewest_devices() and parts_of_at_least(). Sizes differ by at most one.
std::vector<ItemRange> device_shares(std::uint64_t batch, std::uint64_t devices,
                                     std::uint64_t least = 1);

// The common position of a group whose members take their samples from one sequence: in a step,
// `size` members take the next size x batch samples, each member its part. The parts of a step
// depend only on the position and on the size in that step. So every sample is taken exactly once,
// even when members leave or join between two steps, as long as all members advance alike.
//
// Every member has its own object. One owner, one thread.
class SharedCursor {
 public:
  static constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

  // `batch`: samples that one member takes in a step. `end`: of the sequence; the last samples
  // before it are shared out, with sizes that differ by at most one. `least`, at most `batch`: no
  // part has fewer samples than that, if need be by leaving some members without any; 2 for
  // BatchNorm.
  explicit SharedCursor(std::uint64_t batch, std::uint64_t end = no_end, std::uint64_t least = 1)
      : batch_(batch), end_(end), least_(std::min(least, batch)) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t end() const { return end_; }
  bool ended() const { return position_ >= end_; }
  void seek(std::uint64_t position) { position_ = position; }

  // The part of member `rank` of `size` in the next step, as positions of the sequence; may be
  // empty in the last step.
  ItemRange part(std::uint64_t rank, std::uint64_t size) const;
  // The parts of all members together.
  ItemRange all_parts(std::uint64_t size) const;
  // Moves past the parts of `size` members.
  void advance(std::uint64_t size) { position_ = all_parts(size).end(); }

 private:
  std::uint64_t batch_;
  std::uint64_t end_;
  std::uint64_t least_;
  std::uint64_t position_ = 0;
};

inline ItemRange SharedCursor::all_parts(std::uint64_t size) const {
  if (ended()) return {position_, 0};
  return {position_, std::min(size * batch_, end_ - position_)};
}

inline ItemRange SharedCursor::part(std::uint64_t rank, std::uint64_t size) const {
  const ItemRange all = all_parts(size);
  const std::uint64_t parts = parts_of_at_least(all.count, size, least_);
  if (rank >= parts) return {all.end(), 0};
  const ItemRange part = shard(all.count, parts, rank);
  return {all.from + part.from, part.count};
}

}  // namespace dpwa
