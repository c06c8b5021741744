#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"

namespace dpwa::python {

// The thread of the program, and the calls in which it waits for other nodes. Such a call runs on a
// thread of its own, while that of the program heeds signals and does what the call asks of it. A
// signal that raises, such as Ctrl-C, ends the wait at once: the program has given up. One call at
// a time, and none after it has given up. Made by make_shared.
class ProgramThread : public std::enable_shared_from_this<ProgramThread> {
 public:
  // By the program, with the interpreter's lock. Once it has given up, the call goes on by itself:
  // `give_up` hastens its end, its result is dropped, and then comes `undo`, which must not throw.
  // `needs`: what they use. It may be of Python, so its thread never drops it: the interpreter ends
  // a thread that waits for its lock when it ends itself.
  template <class Result>
  Result call(std::function<Result()> call, const std::function<void()>& give_up,
              std::function<void()> undo, std::shared_ptr<void> needs) {
    auto task = std::make_shared<std::packaged_task<Result()>>(std::move(call));
    std::future<Result> result = task->get_future();
    run([&task = *task] { task(); }, give_up, std::move(undo), {task, std::move(needs)});
    return result.get();
  }

  // Drops what ended calls have needed that the program gave up; waits up to so long for their end.
  // With the interpreter's lock; before the interpreter ends.
  static void drop_given_up(std::chrono::seconds patience);

  // By a call: `work` runs on the thread of the program, with the interpreter's lock; between calls
  // by the program itself. Throws what it throws, and std::runtime_error once the program has given
  // up.
  void ask(const std::function<void()>& work);

  bool has_given_up();
  // With the interpreter's lock: what else the call uses that the program has given up.
  void need(std::shared_ptr<void> more);

 private:
  using Needs = std::vector<std::shared_ptr<void>>;

  void run(std::function<void()> call, const std::function<void()>& give_up,
           std::function<void()> undo, Needs needs);
  bool wait_for_news();
  void answer();
  bool end();

  Mutex mutex_;
  Condition changed_;
  const std::function<void()>* asked_ DPWA_GUARDED_BY(mutex_) = nullptr;
  std::exception_ptr failure_ DPWA_GUARDED_BY(mutex_);  // of what was asked last
  bool ended_ DPWA_GUARDED_BY(mutex_) = true;           // the call
  bool given_up_ DPWA_GUARDED_BY(mutex_) = false;
};

}  // namespace dpwa::python
