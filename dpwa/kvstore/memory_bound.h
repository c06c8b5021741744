#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "dpwa/base/invariant.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::kvstore {

// The memory of one slice beside its values: its key, the clocks of its workers and what waits for
// it. A bound on what a process takes for keys of one element and four workers.
inline constexpr std::uint64_t bytes_beside_values = 4096;

// The memory of a slice, or of all slices of a key, without the state of their optimizers.
std::uint64_t memory_of(DType dtype, std::uint64_t elements);

// What the slices of one server take, and what they may take.
class MemoryBound {
 public:
  // `most`: 0: no bound.
  MemoryBound(std::string server, std::uint64_t most) : server_(std::move(server)), most_(most) {}

  std::uint64_t bytes() const { return bytes_; }
  // A slice for which `counted` bytes count takes so many from now on. Returns these.
  std::uint64_t recount(std::uint64_t counted, std::uint64_t bytes);
  // Why the server cannot hold so many more; none: it can.
  std::optional<std::string> shortage(std::uint64_t more) const;

 private:
  friend struct InvariantTest<MemoryBound>;
  const std::string server_;
  const std::uint64_t most_;
  std::uint64_t bytes_ = 0;
};

}  // namespace dpwa::kvstore
