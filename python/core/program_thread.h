#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa::python {

// The thread of the program, and the calls in which it waits for other nodes. Such a call runs on a
// thread of its own, while that of the program heeds signals and does what the call asks of it. A
// signal that raises, such as Ctrl-C, ends the wait at once: the program has given up. One call at
// a time, and none after it has given up. Made by make_shared.
class ProgramThread : public std::enable_shared_from_this<ProgramThread> {
 public:
  // By the program, with the interpreter's lock. Once it has given up, the call goes on by itself
  // with what it holds: `give_up` hastens its end, its result is dropped, and then comes `undo`,
  // which must not throw.
  template <class Result>
  Result call(std::function<Result()> call, const std::function<void()>& give_up,
              std::function<void()> undo) {
    auto task = std::make_shared<std::packaged_task<Result()>>(std::move(call));
    std::future<Result> result = task->get_future();
    run([task] { (*task)(); }, give_up, std::move(undo));
    return result.get();
  }

  // By a call: `work` runs on the thread of the program, with the interpreter's lock. Throws what
  // it throws, and std::runtime_error once the program has given up.
  void ask(const std::function<void()>& work);

  bool has_given_up();

 private:
  void run(std::function<void()> call, const std::function<void()>& give_up,
           std::function<void()> undo);
  bool wait_for_news();
  void answer();
  bool end();

  Mutex mutex_;
  Condition changed_;
  const std::function<void()>* asked_ DPWA_GUARDED_BY(mutex_) = nullptr;
  std::exception_ptr failure_ DPWA_GUARDED_BY(mutex_);  // of what was asked last
  bool ended_ DPWA_GUARDED_BY(mutex_) = false;          // the call
  bool given_up_ DPWA_GUARDED_BY(mutex_) = false;
};

}  // namespace dpwa::python
