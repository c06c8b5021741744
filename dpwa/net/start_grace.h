#pragma once

#include <chrono>

#include "dpwa/base/time.h"
#include "dpwa/log/log.h"
#include "dpwa/net/failure.h"

namespace dpwa::net {

// How loudly the failures of a connection are logged. Of processes that are started together, the
// first ones call where nobody listens yet: that is no reason to warn until some seconds have
// passed. Pure.
class StartGrace {
 public:
  static constexpr Duration length = std::chrono::seconds(5);

  explicit StartGrace(TimePoint started) : until_(started + length) {}

  void connected() { until_ = TimePoint::min(); }  // from now on every failure is a warning
  LogLevel level_of(const Failure& failure, TimePoint now) const {
    return failure.nobody_listens && now < until_ ? LogLevel::info : LogLevel::warn;
  }

 private:
  TimePoint until_;
};

}  // namespace dpwa::net
