#include "adapters/collective/engine/process_group.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <list>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa::collective {
namespace {

constexpr std::chrono::seconds patience_at_the_end(2);
constexpr std::chrono::milliseconds between_looks(5);

// Never destroyed: static objects of a program may end groups after main().
class Leftovers {
 public:
  // The process ends: later work is waited for at once.
  void end() {
    const MutexLock lock(mutex_);
    ended_ = true;
    wait();
  }

  void run(std::function<void()> work) {
    const MutexLock lock(mutex_);
    threads_.remove_if([](const Aside& aside) { return aside.done->load(); });
    auto done = std::make_shared<std::atomic<bool>>(false);
    threads_.push_back({done, std::jthread([work = std::move(work), done]() mutable {
                          run_or_end("a thread of the engine", work);
                          work = nullptr;
                          done->store(true);
                        })});
    name_thread("dpwa-aside", threads_.back().thread.native_handle());
    if (ended_) wait();
  }

 private:
  struct Aside {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };
  // Work that is stuck in the engine, after a lost wake-up, ends with the process.
  void wait() DPWA_REQUIRES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
    for (Aside& aside : threads_) {
      while (!aside.done->load() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(between_looks);
      if (!aside.done->load()) aside.thread.detach();
    }
    threads_.clear();
  }

  Mutex mutex_;
  bool ended_ DPWA_GUARDED_BY(mutex_) = false;
  std::list<Aside> threads_ DPWA_GUARDED_BY(mutex_);
};

Leftovers& leftovers() {
  static Leftovers& all = *new Leftovers;
  return all;
}

}  // namespace

std::unique_ptr<ProcessGroup> ProcessGroup::form(std::shared_ptr<const Engine> engine,
                                                 const c10::intrusive_ptr<c10d::Store>& store,
                                                 const GroupOptions& wanted) {
  ignore_sigpipe();
  const auto broken = std::make_shared<std::atomic<bool>>(false);
  GroupOptions options = wanted;
  options.on_broken = [broken, then = wanted.on_broken] {
    broken->store(true);
    if (then) then();
  };
  Connection connection;
  try {
    if (store) store->setTimeout(options.form_timeout);
    connection = engine->form(store, options);
  } catch (...) {
    throw translate(std::current_exception(), "forming a group", engine->name());
  }
  return std::unique_ptr<ProcessGroup>(
      new ProcessGroup(std::move(engine), options, std::move(connection), broken));
}

ProcessGroup::ProcessGroup(std::shared_ptr<const Engine> engine, const GroupOptions& options,
                           Connection connection, std::shared_ptr<const std::atomic<bool>> broken)
    : engine_(std::move(engine)),
      options_(options),
      connection_(std::move(connection)),
      broken_(std::move(broken)) {}

ProcessGroup::~ProcessGroup() {
  abort();
  finish_aside([group = std::move(connection_.group)]() mutable { group.reset(); });
}

void ProcessGroup::abandon(int rank) noexcept {
  if (!connection_.abandon) return abort();
  if (aborted_.exchange(true)) return;
  try {
    connection_.abandon(rank);
  } catch (const std::exception&) {
    // As in abort().
  }
}

void ProcessGroup::abort() noexcept {
  if (aborted_.exchange(true)) return;
  try {
    connection_.group->abort();
  } catch (const std::exception&) {
    // The engine cannot abort: its timeout ends the operations under way.
  }
}

void ProcessGroup::leave(std::chrono::milliseconds limit) noexcept {
  if (aborted()) return;
  try {
    c10d::BarrierOptions options;
    options.timeout = limit;
    connection_.group->barrier(options)->wait();
    connection_.group->shutdown();
    aborted_ = true;
  } catch (const std::exception&) {
    abort();
  }
}

CollectiveError ProcessGroup::error(const std::string& what) const {
  const auto error = translate(std::current_exception(), what, engine());
  if (error.failure() != Failure::lost) return error;
  if (aborted()) return {Failure::lost, what, engine(), "the group was left while this ran"};
  const auto lost = lost_rank();
  if (!lost) return error;
  return {Failure::lost, what, engine(), "rank " + std::to_string(*lost) + " has gone"};
}

void ProcessGroup::run(const std::string& what, const std::function<void()>& operation) const {
  try {
    if (aborted()) throw CollectiveError(Failure::lost, what, engine(), "the group was left");
    operation();
  } catch (const CollectiveError&) {
    throw;
  } catch (...) {
    throw error(what);
  }
}

void finish_aside(std::function<void()> work) {
  [[maybe_unused]] static const int registered = std::atexit([] { leftovers().end(); });
  leftovers().run(std::move(work));
}

void ignore_sigpipe() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &now, nullptr);
}

}  // namespace dpwa::collective
