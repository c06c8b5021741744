#pragma once

#include <stdexcept>
#include <string>

namespace dpwa::collective {

// The kind of a failure, for callers that decide how to continue.
enum class Failure {
  lost,      // a connection of the group broke, or the group was aborted: the group is useless
  timeout,   // a member has not come in time: the same
  mismatch,  // members called different operations, or with other tensors: the group can continue
  usage,     // an argument that no group could serve, such as an engine that is not in this build
};

// The one failure of this layer. what(): one plain line that names the operation and the engine.
class CollectiveError : public std::runtime_error {
 public:
  CollectiveError(Failure failure, const std::string& operation, const std::string& engine,
                  const std::string& reason)
      : std::runtime_error(operation + " (engine " + engine + "): " + reason),
        failure_(failure),
        operation_(operation),
        engine_(engine),
        reason_(reason) {}
  Failure failure() const { return failure_; }
  const std::string& operation() const { return operation_; }
  const std::string& engine() const { return engine_; }
  // Without the operation and the engine.
  const std::string& reason() const { return reason_; }

 private:
  Failure failure_;
  std::string operation_;
  std::string engine_;
  std::string reason_;
};

}  // namespace dpwa::collective
