#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace dpwa::python {

// Makes a call that may wait for other nodes, on a thread of its own, while Python heeds signals. A
// signal that raises, such as Ctrl-C, ends the wait at once: the call goes on by itself with what
// it holds, and its result is dropped. The caller has the interpreter's lock, `call` not.
template <class Result>
Result patient_call(std::function<Result()> call) {
  constexpr auto between_looks = std::chrono::milliseconds(50);
  std::packaged_task<Result()> task(std::move(call));
  std::future<Result> result = task.get_future();
  std::thread thread(std::move(task));
  while (true) {
    std::future_status status{};
    {
      const nanobind::gil_scoped_release released;
      status = result.wait_for(between_looks);
      if (status == std::future_status::ready) thread.join();
    }
    if (status == std::future_status::ready) return result.get();
    if (PyErr_CheckSignals() != 0) {
      thread.detach();
      throw nanobind::python_error();
    }
  }
}

}  // namespace dpwa::python
