#pragma once

#include <memory>
#include <string>
#include <utility>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/threads.h"

namespace dpwa::test {

// The one name that the resolver knows, and where it is.
class MovingHost {
 public:
  explicit MovingHost(std::string host, const std::string& address)
      : double_([host = std::move(host), at = at_](const std::string& asked) {
          const MutexLock lock(at->mutex);
          Resolved resolved;
          ++at->asked;
          if (asked == host && !at->address.empty()) resolved.addresses = {at->address};
          if (resolved.addresses.empty()) resolved.error = "unknown";
          return resolved;
        }) {
    move(address);
  }
  void move(const std::string& address) {
    const MutexLock lock(at_->mutex);
    at_->address = address;
  }
  int asked() const {
    const MutexLock lock(at_->mutex);
    return at_->asked;
  }

 private:
  struct Place {
    Mutex mutex;
    std::string address;
    int asked = 0;
  };
  std::shared_ptr<Place> at_ = std::make_shared<Place>();
  ResolverDouble double_;
};

}  // namespace dpwa::test
