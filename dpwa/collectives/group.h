#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "dpwa/base/time.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::collectives {

enum class Reduction : std::uint8_t { sum, min, max };

// A member of the group has gone, or the group was aborted: it is of no further use.
class GroupBroken : public std::runtime_error {
 public:
  // `lost`: the rank that has gone; -1: unknown.
  explicit GroupBroken(int lost, const std::string& what) : std::runtime_error(what), lost_(lost) {}
  int lost() const { return lost_; }

 private:
  int lost_;
};

// One member's end of a group whose members call the same operations in the same order, with equal
// sizes where nothing else is said. Operations block. All members get the same bits: numbers are
// combined in the order of ranks where no class says otherwise, float16 and bfloat16 in float32.
//
// One thread at a time; abort() and lost() any thread. Operations throw GroupBroken, within
// milliseconds after an abort() of any member; what they wrote by then is undefined.
class Group {
 public:
  virtual ~Group() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Replaces every number by the combination of those of all members.
  virtual void allreduce(std::span<std::byte> data, DType type, Reduction reduction) = 0;
  // `all` has room for the `own` of every member, in the order of ranks.
  virtual void allgather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  // Fills `data` with that of `root`.
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  // Sends `sent[r]` bytes of `from` to each rank r, and gets `received[r]` bytes of it, both in the
  // order of ranks.
  virtual void alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                        std::span<std::byte> into, std::span<const std::size_t> received) = 0;
  // Returns once all members have called it.
  virtual void barrier() = 0;

  // The longest time that an operation may wait without any progress; after it the group is broken.
  virtual void set_timeout(Duration timeout) = 0;
  // Ends the operations under way, here and at the other members. `lost`: the rank to blame, which
  // the others are told; -1: none.
  virtual void abort(int lost) noexcept = 0;
  // The rank that broke the group, as far as this member knows; -1: none.
  virtual int lost() const = 0;

 protected:
  Group(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_;
  const int size_;
};

}  // namespace dpwa::collectives
