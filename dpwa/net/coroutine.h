#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/base/time.h"

namespace dpwa::net {

// Helpers for the coroutines of an I/O thread.

// co_await with it gives the error code beside the result; nothing throws.
inline constexpr auto as_result = boost::asio::as_tuple(boost::asio::use_awaitable);

// The completion of a coroutine that no other one waits for: a failure is a defect of this program
// and must not pass unseen. run_io() logs it.
inline void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

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

// Lets the coroutines of one thread take turns, in the order in which they ask: the writers of one
// stream. take() costs nothing while no other coroutine has the turn. Outlives its coroutines.
class Turns {
 public:
  explicit Turns(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  bool taken() const { return taken_; }
  boost::asio::awaitable<void> take() {
    if (taken_) {
      boost::asio::steady_timer turn(executor_, TimePoint::max());
      waiting_.push_back(&turn);
      const OnExit over([this, &turn] { std::erase(waiting_, &turn); });
      co_await turn.async_wait(as_result);  // give_back() has handed the turn over
    }
    taken_ = true;
  }
  void give_back() {
    DPWA_INVARIANT(taken_, "a turn is given back by the coroutine that has it");
    taken_ = !waiting_.empty();
    if (!taken_) return;
    waiting_.front()->cancel();
    waiting_.pop_front();
  }

 private:
  const boost::asio::any_io_executor executor_;
  bool taken_ = false;
  std::deque<boost::asio::steady_timer*> waiting_;
};

}  // namespace dpwa::net
