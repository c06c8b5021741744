#pragma once

#include <exception>
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
                  const std::string& reason);
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

// An exception of an engine as a CollectiveError, without the engine's source paths, advice and
// call stacks. A CollectiveError is returned unchanged.
CollectiveError translate(const std::exception_ptr& thrown, const std::string& operation,
                          const std::string& engine);

// The plain part of an engine's message.
std::string plain_reason(const std::string& message);

}  // namespace dpwa::collective
