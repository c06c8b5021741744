#include "python/core/program_thread.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <list>
#include <stdexcept>
#include <thread>

namespace dpwa::python {
namespace {

constexpr std::chrono::milliseconds between_looks(50);  // at signals

// Goes on though the program has given up.
struct GivenUpCall {
  ProgramThread* program;
  std::thread thread;
  std::future<void> end;
  std::vector<std::shared_ptr<void>> needs;
};

// Under the interpreter's lock; never destroyed.
std::list<GivenUpCall>& given_up_calls() {
  static auto& calls = *new std::list<GivenUpCall>;
  return calls;
}

}  // namespace

void ProgramThread::drop_given_up(std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::list<GivenUpCall> calls = std::exchange(given_up_calls(), {});
  {
    const nanobind::gil_scoped_release released;
    for (GivenUpCall& call : calls)
      if (call.end.wait_until(until) == std::future_status::ready) call.thread.join();
  }
  calls.remove_if([](const GivenUpCall& call) { return !call.thread.joinable(); });
  given_up_calls().splice(given_up_calls().end(), calls);
}

void ProgramThread::run(std::function<void()> call, const std::function<void()>& give_up,
                        std::function<void()> undo, Needs needs) {
  drop_given_up({});
  {
    const MutexLock lock(mutex_);
    ended_ = false;
  }
  needs.push_back(shared_from_this());
  const auto over = std::make_shared<std::promise<void>>();
  std::future<void> end = over->get_future();
  std::thread thread =
      start_background_thread([this, over, call = std::move(call), undo = std::move(undo)] {
        call();
        if (this->end()) undo();
        over->set_value();
      });
  while (true) {
    bool ended = false;
    {
      const nanobind::gil_scoped_release released;
      ended = wait_for_news();
      if (ended) thread.join();
    }
    if (ended) return;
    answer();
    if (PyErr_CheckSignals() != 0) {
      {
        const MutexLock lock(mutex_);
        given_up_ = true;
      }
      changed_.notify_all();
      give_up();
      given_up_calls().push_back({this, std::move(thread), std::move(end), std::move(needs)});
      throw nanobind::python_error();
    }
  }
}

// Whether the call has ended.
bool ProgramThread::wait_for_news() {
  const auto until = std::chrono::steady_clock::now() + between_looks;
  MutexLock lock(mutex_);
  while (!ended_ && asked_ == nullptr && changed_.wait_until(lock, until)) {
  }
  return ended_;
}

void ProgramThread::answer() {
  const std::function<void()>* asked = nullptr;
  {
    const MutexLock lock(mutex_);
    asked = asked_;
  }
  if (asked == nullptr) return;
  std::exception_ptr failure;
  try {
    (*asked)();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const MutexLock lock(mutex_);
    failure_ = std::move(failure);
    asked_ = nullptr;
  }
  changed_.notify_all();
}

void ProgramThread::ask(const std::function<void()>& work) {
  std::exception_ptr failure;
  {
    MutexLock lock(mutex_);
    if (ended_ && !given_up_) {
      lock.unlock();
      const nanobind::gil_scoped_acquire acquired;
      return work();
    }
    if (!given_up_) asked_ = &work;
    changed_.notify_all();
    while (asked_ != nullptr && !given_up_) changed_.wait(lock);
    asked_ = nullptr;
    if (given_up_) throw std::runtime_error("the program has given up");
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

bool ProgramThread::has_given_up() {
  const MutexLock lock(mutex_);
  return given_up_;
}

void ProgramThread::need(std::shared_ptr<void> more) {
  for (GivenUpCall& call : given_up_calls())
    if (call.program == this) call.needs.push_back(more);
}

// Of the call. Whether the program has given up.
bool ProgramThread::end() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    if (given_up_) return true;
  }
  changed_.notify_all();
  return false;
}

}  // namespace dpwa::python
