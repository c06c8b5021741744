#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "dpwa/net/coroutine.h"
#include "dpwa/rules/token_bucket.h"

namespace dpwa::net {

// Limits the rate of requests on one connection: a request that comes too soon waits. One thread.
class RequestRate {
 public:
  // `per_second` 0: no bound.
  template <typename Executor>
  RequestRate(double per_second, const Executor& executor)
      : bucket_(per_second, std::chrono::steady_clock::now()), pause_(executor) {}

  boost::asio::awaitable<void> wait() {
    const Duration wait = bucket_.take(std::chrono::steady_clock::now());
    if (wait == Duration::zero()) co_return;
    pause_.expires_after(wait);
    co_await pause_.async_wait(as_result);
  }
  void cancel() { pause_.cancel(); }  // a wait under way ends at once

 private:
  TokenBucket bucket_;
  boost::asio::steady_timer pause_;
};

}  // namespace dpwa::net
