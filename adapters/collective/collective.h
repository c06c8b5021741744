#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/collective/engine/operations.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"

namespace dpwa {

class Endpoint;

// The nodes of a cluster file as ranks, with the operations of Horovod under the same names. Usable
// without the adapter. docs/COLLECTIVE.md compares the names.
//
// All ranks call the same operations in the same order, one thread at a time. A tensor of another
// shape or type on one rank is a CollectiveError with the same sentence on every rank, and the
// ranks can continue. A lost rank is a CollectiveError too; no operation works after it.
class Collective {
 public:
  // Joins the network and waits until all nodes of the file are there, for collective.start_wait at
  // most. Throws ConfigError as make_adapter does, and std::runtime_error that names the missing
  // nodes.
  explicit Collective(const Config& config);
  // Without shutdown() the other ranks lose this one.
  ~Collective();
  Collective(Collective&&) noexcept;

  // Returns once all ranks have called it, or after two seconds.
  void shutdown() noexcept;

  int rank() const;
  int size() const;
  // Among the ranks whose host has the same name in the file as this one's.
  int local_rank() const;
  int local_size() const;

  at::Tensor allreduce(const std::string& name, const at::Tensor& tensor,
                       const collective::ReduceOptions& options = {});
  std::vector<at::Tensor> grouped_allreduce(const std::vector<collective::NamedTensor>& tensors,
                                            const collective::ReduceOptions& options = {});
  collective::Handle allreduce_async(const std::string& name, const at::Tensor& tensor,
                                     const collective::ReduceOptions& options = {});
  at::Tensor allgather(const std::string& name, const at::Tensor& tensor);
  void broadcast(const std::string& name, const at::Tensor& tensor, int root = 0);
  at::Tensor reducescatter(const std::string& name, const at::Tensor& tensor,
                           const collective::ReduceOptions& options = {});
  std::pair<at::Tensor, std::vector<std::int64_t>> alltoall(
      const std::string& name, const at::Tensor& tensor,
      const std::vector<std::int64_t>& splits = {});
  void barrier();
  // For a rank that has no more work; see Operations::join.
  int join();

  // Parameters and buffers of `root`, on all ranks.
  void broadcast_parameters(torch::nn::Module& module, int root = 0);
  // Options and state, such as moments.
  void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root = 0);

  // A process set of these ranks, in this order. Every rank calls it; it returns null on ranks that
  // are not in the set. Must not outlive this object.
  std::unique_ptr<Collective> subset(const std::vector<int>& ranks);

  const collective::ProcessGroup& group() const { return *group_; }

 private:
  Collective(std::unique_ptr<collective::ProcessGroup> group, std::vector<std::string> hosts);

  std::unique_ptr<Endpoint> endpoint_;  // null in a subset
  std::shared_ptr<collective::ProcessGroup> group_;
  std::vector<std::string> hosts_;  // by rank, as peers dial them
  std::uint64_t subsets_ = 0;
};

}  // namespace dpwa
