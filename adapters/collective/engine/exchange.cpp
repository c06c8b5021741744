#include "adapters/collective/engine/exchange.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "dpwa/base/aside.h"

namespace dpwa::collective {

namespace {

// Calls go to the back end itself, because names in c10d::ProcessGroup change between versions.
c10::intrusive_ptr<c10d::Backend> backend_of(const ProcessGroup& group, const at::Tensor& tensor) {
  return group.c10d()->getBackend(tensor.device().type());
}

constexpr std::chrono::milliseconds slice_of_a_wait(20);
constexpr std::chrono::microseconds shortest_pause(20);
constexpr std::chrono::microseconds longest_pause(1000);
constexpr std::chrono::milliseconds patience_with_a_broken_group(60);

}  // namespace

void gather_equal(const ProcessGroup& group, at::Tensor all, at::Tensor own) {
  all = all.view({-1});
  own = own.view({-1});
  bounded_wait(group, backend_of(group, own)->_allgather_base(all, own), {all, own});
}

void exchange_rows(const ProcessGroup& group, at::Tensor into, at::Tensor from,
                   std::vector<std::int64_t> received, std::vector<std::int64_t> sent) {
  bounded_wait(group, backend_of(group, from)->alltoall_base(into, from, received, sent),
               {into, from});
}

void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors) {
  if (group.ends_waits()) {
    work->wait();
    return;
  }
  using Clock = std::chrono::steady_clock;
  const bool in_slices = !group.is_stream_ordered(tensors.front().device());
  std::chrono::microseconds pause = shortest_pause;
  std::optional<Clock::time_point> broken_since;
  while (true) {
    const bool completed = work->isCompleted();
    if (completed || in_slices) {
      try {
        if (in_slices) {
          work->wait(slice_of_a_wait);
        } else {
          work->wait();
        }
        return;
      } catch (...) {
        // If it had not completed before, this may be only the end of the slice.
        if (completed) throw;
      }
    } else {
      // NCCL would take the limit of a wait for that of the operation, and abort the group.
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, longest_pause);
    }
    if (work->isCompleted() || !group.broken()) continue;
    const auto now = Clock::now();
    if (!broken_since) broken_since = now;
    if (now - *broken_since < patience_with_a_broken_group) continue;
    finish_aside([tensors, work] {
      try {
        work->wait();
      } catch (const std::exception&) {
        // As expected.
      }
    });
    throw std::runtime_error("the group is broken");  // callers name the operation
  }
}

std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors) {
  try {
    bounded_wait(group, work, tensors);
    return std::nullopt;
  } catch (...) {
    return group.error(what);
  }
}

}  // namespace dpwa::collective
