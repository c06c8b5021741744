#pragma once

#include <stdexcept>

namespace dpwa {

// A call that the store refuses. The call has changed nothing, and the store can be used further.
class KVStoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dpwa

namespace dpwa::kvstore {

// The servers and local stores do not have this optimizer.
struct UnknownOptimizer : KVStoreError {
  using KVStoreError::KVStoreError;
};

}  // namespace dpwa::kvstore
