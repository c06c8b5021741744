#include "adapters/collective/engine/bounded_wait.h"

#include <chrono>
#include <exception>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "adapters/collective/engine/leftovers.h"

namespace dpwa::collective {
namespace {

constexpr std::chrono::milliseconds slice_of_a_wait(20);
constexpr std::chrono::milliseconds patience_with_a_broken_group(60);

}  // namespace

void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> broken_since;
  while (true) {
    const bool completed = work->isCompleted();
    try {
      work->wait(slice_of_a_wait);
      return;
    } catch (...) {
      // Of one that had not completed before, this may be the end of the slice alone.
      if (completed) throw;
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
    throw CollectiveError(Failure::lost, "waiting", group.engine(), "the group is broken");
  }
}

}  // namespace dpwa::collective
