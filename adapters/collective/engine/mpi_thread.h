#pragma once

#include <functional>
#include <string>

namespace dpwa::collective {

// MPI in this process: begun once, used by one thread of its own, which also ends it. Kept until
// the process ends.
//
// Functions in the order of run(); each may block for as long as the other processes take. One that
// never returns, as when another process has died, keeps the thread for good: the process then ends
// without MPI_Finalize, which mpirun takes for a failure, as it is one.
class MpiThread {
 public:
  // Begins MPI at the first call. Throws std::runtime_error where that fails.
  static MpiThread& instance();

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "Open MPI v4.1.4, all-reduce algorithm 5": how MPI was set up, for the log.
  const std::string& setting() const { return setting_; }

  // Queues `work`, which throws nothing. Any thread.
  void run(std::function<void()> work);
  // From here on MPI is not ended in order. Any thread.
  void give_up();

 private:
  struct State;
  MpiThread();
  void end();

  State* state_;  // shared with the thread, and never freed: the thread may outlive all else
  int rank_ = 0;
  int size_ = 1;
  std::string setting_;
};

// Throws std::runtime_error with MPI's words for a code that is none of success.
void require_success(int code);

}  // namespace dpwa::collective
