#include "adapters/collective/engine/lent_tensor.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace dpwa::collective {
namespace {

// Of a storage whose memory belongs to another tensor.
void release(void* owner) {
  delete static_cast<at::Tensor*>(owner);
}

}  // namespace

void lend(c10d::ProcessGroup& group, const at::Tensor& tensor) {
  if (!tensor.is_cpu()) return;
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const bool is_lent = storage.data_ptr().get_deleter() == &release;
  if (is_lent || !tensor.is_contiguous() || tensor.nbytes() != storage.nbytes()) return;
  const auto backend = group.getBackend(tensor.device().type());
  if (!backend->supportsTensorAlloc(tensor.device().index())) return;
  auto lent =
      std::make_unique<at::Tensor>(backend->allocateTensor(tensor.numel(), tensor.options()));
  lent->copy_(tensor.view({-1}));
  void* const data = lent->mutable_data_ptr();
  storage.set_data_ptr_noswap({data, lent.release(), &release, tensor.device()});
}

}  // namespace dpwa::collective
