#include "adapters/collective/engine/dpwa_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "adapters/collective/engine/dpwa_work.h"
#include "adapters/common/pinned_memory.h"

namespace dpwa::collective {
namespace {

using collectives::Group;

// Lent memory, which the group reads in place, or other memory, that a device copies by itself.
AlignedBuffer locked_memory(const DpwaGroup::Allocate& allocate, std::size_t bytes,
                            at::Device device) {
  if (auto memory = allocate ? allocate(bytes) : nullptr) {
    AlignedBuffer buffer(std::move(memory), bytes);
    if (lock_pages_for(device, buffer)) return buffer;
  }
  return pinned_memory(bytes, device);
}

// The copies of a tensor on a device come behind the work that the caller has queued for it.
std::function<void()> on_stream_of(const at::Tensor& tensor, std::function<void()> perform) {
  if (!tensor.defined() || tensor.is_cpu()) return perform;
  const c10::impl::VirtualGuardImpl api(tensor.device().type());
  return [stream = api.getStream(tensor.device()), perform = std::move(perform)] {
    const c10::StreamGuard on_stream(stream);
    perform();
  };
}

}  // namespace

DpwaGroup::DpwaGroup(std::unique_ptr<Group> group, Allocate allocate,
                     std::function<void()> on_broken)
    : Backend(group->rank(), group->size()),
      group_(std::move(group)),
      allocate_(std::move(allocate)),
      queue_(std::make_shared<collectives::OperationQueue>()),
      on_broken_(std::move(on_broken)) {}

DpwaGroup::~DpwaGroup() {
  abort();
  queue_->end();
}

void DpwaGroup::setTimeout(std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours longest(24 * 365);
  group_->set_timeout(std::min<std::chrono::nanoseconds>(timeout, longest));
}

bool DpwaGroup::supportsTensorAlloc(c10::DeviceIndex device) {
  return allocate_ != nullptr && device < 0;
}

at::Tensor DpwaGroup::allocateTensor(long size, at::TensorOptions options) {
  const std::size_t bytes =
      static_cast<std::size_t>(size) * c10::elementSize(c10::typeMetaToScalarType(options.dtype()));
  auto memory = allocate_ && options.device().is_cpu() ? allocate_(bytes) : nullptr;
  if (!memory) return at::empty({size}, options);
  void* const data = memory.get();
  return at::from_blob(data, {size}, [memory = std::move(memory)](void*) {}, options);
}

// Null: it is in host memory, or on a device that is not staged.
std::shared_ptr<StagedTensor> DpwaGroup::stage(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return nullptr;
  const at::Device device = tensor.device();
  if (!staging_)
    staging_ =
        std::make_shared<DeviceStaging>(device, [allocate = allocate_, device](std::size_t n) {
          return locked_memory(allocate, n, device);
        });
  if (device != staging_->device()) return nullptr;
  return std::make_shared<StagedTensor>(staging_, tensor);
}

DpwaGroup::WorkPtr DpwaGroup::start(c10d::OpType type, const at::Tensor& result, std::size_t bytes,
                                    Perform perform, std::shared_ptr<StagedTensor> staged) {
  if (!staged) perform = on_stream_of(result, std::move(perform));
  const auto call = std::make_shared<collectives::Operation>(std::move(perform), bytes,
                                                             c10d::opTypeToString(type));
  queue_->add(call, bytes >= collectives::large_bytes);
  return c10::make_intrusive<DpwaWork>(getRank(), type, queue_, call, std::move(staged));
}

DpwaGroup::WorkPtr DpwaGroup::start_in_place(c10d::OpType type, const at::Tensor& tensor,
                                             Change change) {
  const auto staged = stage(tensor);
  auto perform = [tensor, staged, change = std::move(change)] {
    const at::Tensor host = staged ? staged->host() : on_host(tensor);
    change(host);
    if (staged) {
      staged->give_back();
    } else {
      give_back(host, tensor);
    }
  };
  return start(type, tensor, tensor.nbytes(), std::move(perform), staged);
}

DpwaGroup::WorkPtr DpwaGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only_one(tensors);
  const DType type = number_type_of(tensor);
  const collectives::Reduction reduction = group_reduction_of(options.reduceOp);
  return start_in_place(c10d::OpType::ALLREDUCE, tensor,
                        [this, type, reduction](const at::Tensor& host) {
                          group_->allreduce(memory_of(host), type, reduction);
                        });
}

DpwaGroup::WorkPtr DpwaGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_one(tensors);
  const std::int64_t root = options.rootRank;
  if (root < 0 || root >= getSize()) refuse("there is no rank " + std::to_string(root));
  return start_in_place(c10d::OpType::BROADCAST, tensor, [this, root](const at::Tensor& host) {
    group_->broadcast(memory_of(host), static_cast<int>(root));
  });
}

DpwaGroup::WorkPtr DpwaGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                              const c10d::AllgatherOptions&) {
  require_contiguous({output, input});
  if (output.nbytes() != input.nbytes() * static_cast<std::size_t>(getSize()))
    refuse("the results of all do not fit");
  return start(c10d::OpType::_ALLGATHER_BASE, output, output.nbytes(), [this, output, input] {
    const at::Tensor all = on_host(output);
    group_->allgather(memory_of(on_host(input)), memory_of(all));
    give_back(all, output);
  });
}

DpwaGroup::WorkPtr DpwaGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                            std::vector<std::int64_t>& received,
                                            std::vector<std::int64_t>& sent,
                                            const c10d::AllToAllOptions&) {
  require_contiguous({output, input});
  const auto to_me = bytes_by_rank(output, received, getSize());
  const auto to_others = bytes_by_rank(input, sent, getSize());
  const auto self = static_cast<std::size_t>(getRank());
  if (to_me[self] != to_others[self]) refuse("a rank sends itself what it does not take");
  return start(c10d::OpType::ALLTOALL_BASE, output, output.nbytes() + input.nbytes(),
               [this, output, input, to_me, to_others] {
                 const at::Tensor into = on_host(output);
                 group_->alltoall(memory_of(on_host(input)), to_others, memory_of(into), to_me);
                 give_back(into, output);
               });
}

DpwaGroup::WorkPtr DpwaGroup::barrier(const c10d::BarrierOptions&) {
  return start(c10d::OpType::BARRIER, {}, 0, [this] { group_->barrier(); });
}

// The destructor of the group tells the others that this member leaves in order, unless that would
// leave an operation under way, which may wait for them for ever.
void DpwaGroup::shutdown() {
  if (end() && queue_->performs()) break_off(-1);
}

void DpwaGroup::abandon(int rank) {
  if (end()) break_off(rank);
}

void DpwaGroup::break_off(int rank) {
  group_->abort(rank);
  if (on_broken_) on_broken_();
}

// Whether it was in use.
bool DpwaGroup::end() {
  if (left_.exchange(true)) return false;
  queue_->fail(std::make_exception_ptr(std::runtime_error("the group was left")));
  return true;
}

std::optional<int> DpwaGroup::lost_rank() const {
  const int lost = group_->lost();
  return lost < 0 ? std::nullopt : std::optional(lost);
}

}  // namespace dpwa::collective
