#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/reduce_options.h"

namespace dpwa::collective {

// A tensor and the name that errors call it by.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// An operation under way. Movable. The tensors that were given stay as they were.
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

// The operations that a user of Horovod looks for, over one group. Members call the same operations
// in the same order; tensors of another shape or type, other options, or an argument that one
// member has wrong are one CollectiveError (mismatch) with the same sentence on every member, and
// the group goes on; see ReduceOptions::check. Everything else that fails is `lost` or `timeout`,
// after which the group is of no use.
//
// Tensors may have gradients, strides and any dense type; results have none of the former.
// `group` outlives this. One thread at a time.
class Operations {
 public:
  explicit Operations(const ProcessGroup& group) : group_(group) {}

  // Of every element over all members. float16 and bfloat16 are summed in float32.
  at::Tensor allreduce(const NamedTensor& tensor, const ReduceOptions& options = {});
  // Several tensors in one message per type.
  std::vector<at::Tensor> grouped_allreduce(const std::vector<NamedTensor>& tensors,
                                            const ReduceOptions& options = {});
  // Returns once the members agree and the message is on its way; with a compression, when it has
  // arrived.
  Handle allreduce_async(const std::vector<NamedTensor>& tensors,
                         const ReduceOptions& options = {});

  // The members' tensors below one another, in the order of ranks. They differ in the first
  // dimension at most; a scalar counts as one row.
  at::Tensor allgather(const NamedTensor& tensor);

  // Fills `tensor` with that of `root`.
  void broadcast(const NamedTensor& tensor, int root = 0);

  // Reduces, and keeps of the result this member's share of the rows: shares differ by one row at
  // most, the first ranks have the larger ones.
  at::Tensor reducescatter(const NamedTensor& tensor, const ReduceOptions& options = {});

  // Sends splits[r] rows to rank r, without splits the same number to each; the rows that came, in
  // the order of ranks, and how many from each.
  std::pair<at::Tensor, std::vector<std::int64_t>> alltoall(
      const NamedTensor& tensor, const std::vector<std::int64_t>& splits = {});

  // Returns once all members have called it.
  void barrier();

  // For a member that has no work any more: until all have called it, takes part in what the others
  // call, with zeros in an allreduce (in min and max it has no say; an average counts all members),
  // no rows in an allgather, and what it hears in a broadcast is dropped. Reducescatter, alltoall
  // and a broadcast from a member that has joined are a mismatch on all; after that it may be
  // called again. The others need ReduceOptions::check. Returns the rank that was the last to join,
  // the lowest of several.
  int join();

 private:
  // An allreduce that the members have agreed on, or do not ask about.
  Handle launch(const std::vector<NamedTensor>& tensors, const ReduceOptions& options);
  void answer(const std::string& text, const std::vector<std::int64_t>& payloads);
  at::Tensor gather_rows(const std::string& title, const at::Tensor& own,
                         const std::vector<std::int64_t>& rows);
  void receive(const std::string& title, const at::Tensor& tensor, int root,
               const std::vector<std::int64_t>& payloads);

  const ProcessGroup& group_;
};

}  // namespace dpwa::collective
