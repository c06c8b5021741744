#pragma once

#include <mpi.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace dpwa::collective {

// MPI in this process: initialised once, used by one thread of its own, which also finalises it.
// Lives until the process ends.
//
// Runs the functions in the order of run(). Each may block as long as the other processes take. If
// one never returns, because another process has died, the thread stays blocked. The process then
// ends without MPI_Finalize, and mpirun reports a failure.
class MpiThread {
 public:
  // Initialises MPI at the first call. Throws std::runtime_error if that fails.
  static MpiThread& instance();

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "Open MPI v4.1.4, all-reduce algorithm 5": how MPI was set up, for the log.
  const std::string& setting() const { return setting_; }

  // Queues `work`, which throws nothing. Any thread.
  void run(std::function<void()> work);
  // MPI will not be finalised. Any thread.
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

// Throws std::runtime_error with MPI's message for a code other than success.
void require_success(int code);

class MpiWork;

// A c10d back end over MPI for all processes that mpirun has started. It has the operations that
// this layer and c10d::Reducer call, for contiguous tensors in host memory. LibTorch's wheels have
// no such back end. Operations are blocking calls of MPI, one after the other on the thread of
// MpiThread, because MPI's all-reduce algorithms are not available in its calls that return at
// once.
class MpiGroup final : public c10d::Backend {
 public:
  // All processes call it in the same order. `on_broken`: see GroupOptions. Blocks; throws
  // std::runtime_error.
  MpiGroup(int rank, int size, std::function<void()> on_broken);
  ~MpiGroup() override;

  const std::string getBackendName() const override { return "mpi"; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& all, at::Tensor& own,
                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& into, at::Tensor& from,
                                               std::vector<std::int64_t>& received,
                                               std::vector<std::int64_t>& sent,
                                               const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

  // Ends all operations under way with an error on this node. MPI can neither cancel the current
  // one nor inform the others; they notice it by themselves.
  void abort() override;
  void shutdown() override;

 private:
  struct Shared;
  using Call = std::function<void(MPI_Comm)>;
  c10::intrusive_ptr<c10d::Work> start(c10d::OpType type, std::chrono::milliseconds timeout,
                                       Call call);

  std::shared_ptr<Shared> shared_;  // with what is queued
  std::function<void()> on_broken_;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace dpwa::collective
