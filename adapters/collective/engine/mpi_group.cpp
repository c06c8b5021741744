#include "adapters/collective/engine/mpi_group.h"

#include <algorithm>
#include <future>
#include <stdexcept>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa::collective {

// One operation, which ends once: by its call or by abort().
class MpiWork final : public c10d::Work {
 public:
  MpiWork(int rank, c10d::OpType type, std::chrono::milliseconds timeout)
      : Work(rank, type), timeout_(timeout) {}

  bool wait(std::chrono::milliseconds timeout) override {
    return Work::wait(timeout == kNoTimeout ? timeout_ : timeout);
  }

  void end(const std::exception_ptr& problem) {
    if (!ended_.exchange(true)) finish(problem);
  }

 private:
  std::chrono::milliseconds timeout_;
  std::atomic<bool> ended_ = false;
};

namespace {

// MPI counts in int.
constexpr std::int64_t most_at_once = std::int64_t{1} << 30;

int count_of(std::int64_t count) {
  if (count > most_at_once)
    throw std::runtime_error("a part of " + std::to_string(count) +
                             " bytes is more than MPI takes at once");
  return static_cast<int>(count);
}

MPI_Datatype type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kByte:
      return MPI_UINT8_T;
    case at::kChar:
      return MPI_INT8_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kLong:
      return MPI_INT64_T;
    default:
      throw std::runtime_error(std::string("MPI does not reduce ") +
                               c10::toString(tensor.scalar_type()));
  }
}

MPI_Op operation_of(const c10d::ReduceOp& reduction) {
  switch (reduction) {
    case c10d::ReduceOp::SUM:
      return MPI_SUM;
    case c10d::ReduceOp::MIN:
      return MPI_MIN;
    case c10d::ReduceOp::MAX:
      return MPI_MAX;
    default:
      throw std::runtime_error("MPI supports only the reductions sum, min and max");
  }
}

at::Tensor only(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1 || !tensors[0].is_contiguous() || !tensors[0].is_cpu())
    throw std::runtime_error("MPI takes one contiguous tensor in host memory");
  return tensors[0];
}

// In calls of at most `most_at_once` elements of `size` bytes.
void in_parts(at::Tensor tensor, std::int64_t elements, std::int64_t size,
              const std::function<int(void* from, int count)>& call) {
  auto* from = static_cast<char*>(tensor.data_ptr());
  for (std::int64_t done = 0; done < elements; done += most_at_once) {
    const auto count = std::min(most_at_once, elements - done);
    require_success(call(from + done * size, static_cast<int>(count)));
  }
}

// Counts and places, in bytes, of the rows for or from each rank.
struct Rows {
  std::vector<int> counts, places;
  Rows(const at::Tensor& tensor, std::vector<std::int64_t> rows, int size) {
    const std::int64_t first = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (rows.empty()) rows.assign(static_cast<std::size_t>(size), first / size);
    const auto row_bytes = first == 0 ? 0 : static_cast<std::int64_t>(tensor.nbytes()) / first;
    std::int64_t place = 0;
    for (const auto count : rows) {
      counts.push_back(count_of(count * row_bytes));
      places.push_back(count_of(place));
      place += count * row_bytes;
    }
  }
};

std::exception_ptr left() {
  return std::make_exception_ptr(std::runtime_error("the group was left"));
}

}  // namespace

struct MpiGroup::Shared {
  MPI_Comm comm = MPI_COMM_NULL;
  Mutex mutex;
  bool ended DPWA_GUARDED_BY(mutex) = false;
  bool calls DPWA_GUARDED_BY(mutex) = false;  // MPI is in an operation of this group
  std::list<c10::intrusive_ptr<MpiWork>> pending DPWA_GUARDED_BY(mutex);  // queued or under way
};

MpiGroup::MpiGroup(int rank, int size, std::function<void()> on_broken)
    : Backend(rank, size), shared_(std::make_shared<Shared>()), on_broken_(std::move(on_broken)) {
  std::promise<void> formed;
  MpiThread::instance().run([shared = shared_, &formed] {
    try {
      require_success(MPI_Comm_dup(MPI_COMM_WORLD, &shared->comm));
      MPI_Comm_set_errhandler(shared->comm, MPI_ERRORS_RETURN);
      formed.set_value();
    } catch (...) {
      formed.set_exception(std::current_exception());
    }
  });
  formed.get_future().get();
}

MpiGroup::~MpiGroup() {
  abort();
}

c10::intrusive_ptr<c10d::Work> MpiGroup::start(c10d::OpType type, std::chrono::milliseconds timeout,
                                               Call call) {
  if (timeout <= kNoTimeout) timeout = timeout_;
  auto work = c10::make_intrusive<MpiWork>(getRank(), type, timeout);
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->ended) {
      work->end(left());
      return work;
    }
    shared_->pending.push_back(work);
  }
  MpiThread::instance().run([shared = shared_, work, call = std::move(call)]() mutable {
    {
      const MutexLock lock(shared->mutex);
      if (shared->ended) return;
      shared->calls = true;
    }
    std::exception_ptr problem;
    try {
      call(shared->comm);
    } catch (...) {
      problem = std::current_exception();
    }
    call = nullptr;
    {
      const MutexLock lock(shared->mutex);
      shared->calls = false;
      shared->pending.remove(work);
    }
    work->end(problem);
  });
  return work;
}

c10::intrusive_ptr<c10d::Work> MpiGroup::allreduce(std::vector<at::Tensor>& tensors,
                                                   const c10d::AllreduceOptions& options) {
  const auto tensor = only(tensors);
  const auto type = type_of(tensor);
  const auto operation = operation_of(options.reduceOp);
  return start(c10d::OpType::ALLREDUCE, options.timeout, [=](MPI_Comm comm) {
    in_parts(tensor, tensor.numel(), static_cast<std::int64_t>(tensor.element_size()),
             [&](void* from, int count) {
               return MPI_Allreduce(MPI_IN_PLACE, from, count, type, operation, comm);
             });
  });
}

c10::intrusive_ptr<c10d::Work> MpiGroup::broadcast(std::vector<at::Tensor>& tensors,
                                                   const c10d::BroadcastOptions& options) {
  const auto tensor = only(tensors);
  const int root = static_cast<int>(options.rootRank);
  return start(c10d::OpType::BROADCAST, options.timeout, [=](MPI_Comm comm) {
    in_parts(tensor, static_cast<std::int64_t>(tensor.nbytes()), 1,
             [&](void* from, int count) { return MPI_Bcast(from, count, MPI_BYTE, root, comm); });
  });
}

c10::intrusive_ptr<c10d::Work> MpiGroup::_allgather_base(at::Tensor& all, at::Tensor& own,
                                                         const c10d::AllgatherOptions& options) {
  const auto into = only({all}), from = only({own});
  const int bytes = count_of(static_cast<std::int64_t>(from.nbytes()));
  if (into.nbytes() != from.nbytes() * static_cast<std::size_t>(getSize()))
    throw std::runtime_error("the results of all do not fit");
  return start(c10d::OpType::_ALLGATHER_BASE, options.timeout, [=](MPI_Comm comm) {
    require_success(
        MPI_Allgather(from.data_ptr(), bytes, MPI_BYTE, into.data_ptr(), bytes, MPI_BYTE, comm));
  });
}

c10::intrusive_ptr<c10d::Work> MpiGroup::alltoall_base(at::Tensor& into, at::Tensor& from,
                                                       std::vector<std::int64_t>& received,
                                                       std::vector<std::int64_t>& sent,
                                                       const c10d::AllToAllOptions& options) {
  const auto to_me = only({into}), to_others = only({from});
  const Rows in(to_me, received, getSize()), out(to_others, sent, getSize());
  return start(c10d::OpType::ALLTOALL_BASE, options.timeout, [=](MPI_Comm comm) {
    require_success(MPI_Alltoallv(to_others.data_ptr(), out.counts.data(), out.places.data(),
                                  MPI_BYTE, to_me.data_ptr(), in.counts.data(), in.places.data(),
                                  MPI_BYTE, comm));
  });
}

c10::intrusive_ptr<c10d::Work> MpiGroup::barrier(const c10d::BarrierOptions& options) {
  return start(c10d::OpType::BARRIER, options.timeout,
               [](MPI_Comm comm) { require_success(MPI_Barrier(comm)); });
}

void MpiGroup::abort() {
  std::list<c10::intrusive_ptr<MpiWork>> given_up;
  {
    const MutexLock lock(shared_->mutex);
    if (std::exchange(shared_->ended, true)) return;
    given_up.swap(shared_->pending);
    if (shared_->calls) MpiThread::instance().give_up();
  }
  for (const auto& work : given_up) work->end(left());
  if (!given_up.empty() && on_broken_) on_broken_();
}

void MpiGroup::shutdown() {
  {
    const MutexLock lock(shared_->mutex);
    if (std::exchange(shared_->ended, true)) return;
  }
  MpiThread::instance().run([shared = shared_] { MPI_Comm_free(&shared->comm); });
}

}  // namespace dpwa::collective
