#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace dpwa::python {

// Makes a call that may wait for other nodes, on a thread of its own, while Python heeds signals. A
// signal that raises, such as Ctrl-C, ends the wait at once: the call goes on by itself with what
// it holds, its result is dropped, and then comes `undo`, which must not throw. The caller has the
// interpreter's lock, `call` and `undo` not.
template <class Result>
Result patient_call(std::function<Result()> call, std::function<void()> undo) {
  constexpr auto between_looks = std::chrono::milliseconds(50);
  const auto is_given_up = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<Result()> task(std::move(call));
  std::future<Result> result = task.get_future();
  std::thread thread([task = std::move(task), undo = std::move(undo), is_given_up]() mutable {
    task();
    if (is_given_up->load()) undo();
  });
  while (true) {
    std::future_status status{};
    {
      const nanobind::gil_scoped_release released;
      status = result.wait_for(between_looks);
      if (status == std::future_status::ready) thread.join();
    }
    if (status == std::future_status::ready) return result.get();
    if (PyErr_CheckSignals() != 0) {
      is_given_up->store(true);
      thread.detach();
      throw nanobind::python_error();
    }
  }
}

}  // namespace dpwa::python
