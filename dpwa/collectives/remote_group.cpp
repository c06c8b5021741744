#include "dpwa/collectives/remote_group.h"

#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/collectives/allreduces.h"
#include "dpwa/collectives/exchanges.h"
#include "dpwa/collectives/plan.h"

namespace dpwa::collectives {

RemoteGroup::RemoteGroup(std::unique_ptr<Links> links)
    : Group(links->rank(), links->size()), links_(std::move(links)) {}

// An operation that fails for another reason, such as want of memory, has left the others waiting.
template <typename Operation>
void RemoteGroup::run(const Operation& operation) {
  links_->check();
  try {
    operation();
  } catch (const GroupBroken&) {
    throw;
  } catch (...) {
    links_->abort(rank());
    throw;
  }
}

void RemoteGroup::allreduce(std::span<std::byte> data, DType type, Reduction reduction) {
  DPWA_INVARIANT(data.size() % size_of(type) == 0, "whole numbers", data.size(), type);
  const AllreducePlan plan = plan_allreduce(data.size(), type, size());
  const Numbers numbers{data, type, reduction};
  run([&] {
    if (data.empty() || size() == 1) return;
    switch (plan.way) {
      case AllreducePlan::Way::whole:
        return allreduce_whole(*links_, numbers, scratch_);
      case AllreducePlan::Way::parts:
        return allreduce_in_parts(*links_, numbers, plan.chunk_bytes, scratch_);
      case AllreducePlan::Way::ring:
        return allreduce_by_ring(*links_, numbers, plan.chunk_bytes, scratch_);
    }
  });
}

void RemoteGroup::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  run([&] { gather_all(*links_, own, all); });
}

void RemoteGroup::broadcast(std::span<std::byte> data, int root) {
  run([&] { spread(*links_, data, root); });
}

void RemoteGroup::alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                           std::span<std::byte> into, std::span<const std::size_t> received) {
  run([&] { exchange(*links_, from, sent, into, received); });
}

void RemoteGroup::barrier() {
  run([&] { meet(*links_); });
}

}  // namespace dpwa::collectives
