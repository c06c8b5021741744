#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace dpwa::world::testing {

namespace flow {

struct Promise {
  std::coroutine_handle<> then;  // that awaits the end; null: nobody
  std::exception_ptr problem;

  struct End {
    bool await_ready() noexcept { return false; }
    template <class Of>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Of> ended) noexcept {
      const auto then = ended.promise().then;
      return then ? then : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  End final_suspend() noexcept { return {}; }
  void unhandled_exception() { problem = std::current_exception(); }
};

template <class Value>
struct ValuePromise : Promise {
  std::optional<Value> value;
  void return_value(Value result) { value = std::move(result); }
  Value take() { return *std::move(value); }
};
template <>
struct ValuePromise<void> : Promise {
  void return_void() {}
  void take() {}
};

}  // namespace flow

// What a process does one after the other, with waits between, as one function. It begins when it
// is awaited, or by begin(), and goes with its owner, wherever it waits.
template <class Value = void>
class Flow {
 public:
  struct promise_type : flow::ValuePromise<Value> {
    Flow get_return_object() {
      return Flow(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  Flow() = default;
  Flow(Flow&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Flow& operator=(Flow&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Flow() {
    if (handle_) handle_.destroy();
  }

  void begin() { handle_.resume(); }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> then) {
    handle_.promise().then = then;
    return handle_;
  }
  Value await_resume() {
    if (handle_.promise().problem) std::rethrow_exception(handle_.promise().problem);
    return handle_.promise().take();
  }

 private:
  explicit Flow(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace dpwa::world::testing
