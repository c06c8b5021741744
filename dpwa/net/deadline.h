#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "dpwa/base/time.h"

namespace dpwa::net {

// Calls `on_expiry` once on the executor's thread when the time comes, unless destroyed before:
// after that it is never called, even when the timer had already fired. Same thread throughout.
class Deadline {
 public:
  template <typename Executor>
  Deadline(Executor&& executor, TimePoint when, std::function<void()> on_expiry)
      : timer_(std::forward<Executor>(executor), when), state_(std::make_shared<State>()) {
    state_->on_expiry = std::move(on_expiry);
    timer_.async_wait([state = state_](const boost::system::error_code& cancelled) {
      if (cancelled || !state->on_expiry) return;
      state->expired = true;
      state->on_expiry();
    });
  }
  ~Deadline() { state_->on_expiry = nullptr; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  bool expired() const { return state_->expired; }

 private:
  struct State {
    std::function<void()> on_expiry;
    bool expired = false;
  };
  boost::asio::steady_timer timer_;
  std::shared_ptr<State> state_;
};

}  // namespace dpwa::net
