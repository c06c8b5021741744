#pragma once

#include <cstdint>
#include <vector>

namespace dpwa::kvstore {

using Versions = std::vector<std::uint64_t>;

// A push or a pull that has begun. It refers to its store, which outlives the use of it.
class Call {
 public:
  virtual ~Call() = default;
  // Whether wait() returns at once.
  virtual bool done() = 0;
  // Waits until a push is acknowledged, or the values of a pull are there. Returns the versions of
  // its keys. Throws KVStoreError when the push or pull was refused.
  virtual Versions wait() = 0;
};

}  // namespace dpwa::kvstore
