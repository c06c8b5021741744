#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "dpwa/collective/reduce_options.h"

namespace dpwa::collective {

// A tensor and the name that errors call it by.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// An operation under way. Movable. The given tensors are not changed.
class Handle {
 public:
  struct State;
  explicit Handle(std::unique_ptr<State> state);
  ~Handle();
  Handle(Handle&&) noexcept;
  Handle& operator=(Handle&&) noexcept;

  bool done() const;
  // The results in the order of the tensors. Throws CollectiveError. Once.
  std::vector<at::Tensor> wait();

 private:
  std::unique_ptr<State> state_;
};

// The operations of Horovod over one group. Members call the same operations in the same order.
// Different shapes, types or options, or a wrong argument of one member, are a CollectiveError
// (mismatch) with the same sentence on every member, and the group can continue (see
// ReduceOptions::check). Every other failure is `lost` or `timeout`; after it the group is
// useless.
//
// Tensors may have gradients, strides and any dense type; results have no gradients or strides.
// `group` outlives this. One thread at a time.
class Operations {
 public:
  explicit Operations(const ProcessGroup& group) : group_(group) {}

  // Reduces every element over all members. float16 and bfloat16 are summed in float32.
  at::Tensor allreduce(const std::string& name, const at::Tensor& tensor,
                       const ReduceOptions& options = {});
  // Several tensors in one message per type.
  std::vector<at::Tensor> grouped_allreduce(const std::vector<NamedTensor>& tensors,
                                            const ReduceOptions& options = {});
  // Returns once the members agree and the message is on its way; with a compression, once it has
  // arrived.
  Handle allreduce_async(const std::string& name, const at::Tensor& tensor,
                         const ReduceOptions& options = {});

  // The members' tensors, concatenated in the order of ranks. Their shapes may differ only in the
  // first dimension; a scalar counts as one row.
  at::Tensor allgather(const std::string& name, const at::Tensor& tensor);

  // Fills `tensor` with that of `root`.
  void broadcast(const std::string& name, const at::Tensor& tensor, int root = 0);

  // Reduces, and returns this member's share of the rows of the result. Shares differ by one row at
  // most; the first ranks have the larger ones.
  at::Tensor reducescatter(const std::string& name, const at::Tensor& tensor,
                           const ReduceOptions& options = {});

  // Sends splits[r] rows to rank r; without splits, the same number to each. Returns the received
  // rows in the order of ranks, and the number of rows from each.
  std::pair<at::Tensor, std::vector<std::int64_t>> alltoall(
      const std::string& name, const at::Tensor& tensor,
      const std::vector<std::int64_t>& splits = {});

  // Returns once all members have called it.
  void barrier();

  // For a member that has no more work. Until all have called it, it takes part in the operations
  // of the others: with zeros in an allreduce (it does not count in min and max, but does in an
  // average), without rows in an allgather, and it drops what a broadcast brings. Reducescatter,
  // alltoall and a broadcast from a joined member are a mismatch on all members; after that it may
  // be called again. The others need ReduceOptions::check. Returns the rank that joined last, the
  // lowest of several.
  int join();

  const ProcessGroup& group() const { return group_; }

 private:
  Handle begin(const std::vector<NamedTensor>& tensors, const ReduceOptions& options);
  // An allreduce on which the members have agreed, or which they do not compare.
  Handle launch(const std::vector<NamedTensor>& tensors, const ReduceOptions& options);
  void answer(const std::string& text, const std::vector<std::int64_t>& payloads);
  at::Tensor gather_rows(const std::string& title, const at::Tensor& own,
                         const std::vector<std::int64_t>& rows);
  void receive(const std::string& title, const at::Tensor& tensor, int root,
               const std::vector<std::int64_t>& payloads);

  const ProcessGroup& group_;
};

}  // namespace dpwa::collective
