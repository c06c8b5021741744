#include "adapters/collective/engine/exchange.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/bounded_wait.h"

namespace dpwa::collective {

namespace {

// Called on the back end itself: c10d::ProcessGroup's names for these change between versions.
c10::intrusive_ptr<c10d::Backend> backend_of(const ProcessGroup& group, const at::Tensor& tensor) {
  return group.c10d()->getBackend(tensor.device().type());
}

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

}  // namespace dpwa::collective
