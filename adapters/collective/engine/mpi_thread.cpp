#include "adapters/collective/engine/mpi_group.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <stdexcept>
#include <thread>

namespace dpwa::collective {

namespace {

constexpr std::chrono::seconds limit_at_the_end(5);

// Open MPI reads its settings from the environment at its start; settings of the user are kept. Its
// default choice of an algorithm is slower for messages of the size of buckets.
struct Setting {
  const char* name;
  const char* value;
};
constexpr const char* algorithm_variable = "OMPI_MCA_coll_tuned_allreduce_algorithm";
constexpr std::array<Setting, 3> settings{
    {{"OMPI_MCA_coll_tuned_use_dynamic_rules", "1"},
     {algorithm_variable, "5"},  // segmented ring
     {"OMPI_MCA_coll_tuned_allreduce_algorithm_segmentsize", "1048576"}}};

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace

void require_success(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw std::runtime_error(std::string(text.data(), static_cast<std::size_t>(length)));
}

struct MpiThread::State {
  Mutex mutex;
  Condition changed;
  std::deque<std::function<void()>> work DPWA_GUARDED_BY(mutex);
  bool ends DPWA_GUARDED_BY(mutex) = false;
  bool given_up DPWA_GUARDED_BY(mutex) = false;
  bool done DPWA_GUARDED_BY(mutex) = false;
};

MpiThread& MpiThread::instance() {
  struct Owner {
    MpiThread thread;
    ~Owner() { thread.end(); }
  };
  static Owner owner;
  return owner.thread;
}

MpiThread::MpiThread() : state_(new State) {
  for (const auto& [name, value] : settings) setenv(name, value, /*overwrite=*/0);
  std::thread([state = state_] {
    name_thread("dpwa-mpi");
    MutexLock lock(state->mutex);
    for (;;) {
      while (!state->ends && state->work.empty()) state->changed.wait(lock);
      if (state->work.empty()) break;
      auto work = std::move(state->work.front());
      state->work.pop_front();
      lock.unlock();
      run_or_end("the thread of MPI", work);
      work = nullptr;
      lock.lock();
    }
    state->done = true;
    state->changed.notify_all();
  }).detach();

  std::exception_ptr problem;
  bool begun = false;
  run([&, state = state_] {
    try {
      int provided = 0;
      require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
      if (provided < MPI_THREAD_SERIALIZED)
        throw std::runtime_error("this MPI serves only the first thread of a process");
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
      MPI_Comm_size(MPI_COMM_WORLD, &size_);
      setting_ = library_version();
      if (setting_.starts_with("Open MPI"))
        setting_ += std::string(", all-reduce algorithm ") + std::getenv(algorithm_variable);
    } catch (...) {
      problem = std::current_exception();
    }
    const MutexLock lock(state->mutex);
    begun = true;
    state->changed.notify_all();
  });
  MutexLock lock(state_->mutex);
  while (!begun) state_->changed.wait(lock);
  if (problem) std::rethrow_exception(problem);
}

void MpiThread::run(std::function<void()> work) {
  const MutexLock lock(state_->mutex);
  state_->work.push_back(std::move(work));
  state_->changed.notify_all();
}

void MpiThread::give_up() {
  const MutexLock lock(state_->mutex);
  state_->given_up = true;
}

void MpiThread::end() {
  MutexLock lock(state_->mutex);
  if (state_->given_up) return;
  state_->work.emplace_back([] { MPI_Finalize(); });
  state_->ends = true;
  state_->changed.notify_all();
  const auto until = std::chrono::steady_clock::now() + limit_at_the_end;
  while (!state_->done && state_->changed.wait_until(lock, until)) {
  }
}

}  // namespace dpwa::collective
