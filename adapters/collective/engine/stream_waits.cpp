#include "adapters/collective/engine/stream_waits.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "adapters/collective/engine/exchange.h"

namespace dpwa::collective {

StreamWaits::StreamWaits(const ProcessGroup& group) : group_(group) {}
StreamWaits::~StreamWaits() = default;

void StreamWaits::end_step() {
  before_ = std::exchange(now_, {});
}

void StreamWaits::add(const c10::intrusive_ptr<c10d::Work>& work, const at::Tensor& tensor) {
  work->wait();
  now_.emplace_back(work, tensor);
}

std::optional<CollectiveError> StreamWaits::end_step_before(const std::string& what) {
  std::optional<CollectiveError> problem;
  for (const auto& [work, tensor] : std::exchange(before_, {})) {
    auto failed = await_work(group_, work, what, {tensor});
    if (!problem) problem = std::move(failed);
  }
  return problem;
}

}  // namespace dpwa::collective
