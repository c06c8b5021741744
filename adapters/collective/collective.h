#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/collective/engine/operations.h"
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
class Collective : public collective::Operations {
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

  int rank() const { return group().rank(); }
  int size() const { return group().size(); }
  // Among the ranks whose host has the same name in the file as this one's.
  int local_rank() const;
  int local_size() const;

  // Parameters and buffers of `root`, on all ranks.
  void broadcast_parameters(torch::nn::Module& module, int root = 0);
  // Options and state, such as moments.
  void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, int root = 0);

  // A process set of these ranks, in this order. Every rank calls it; it returns null on ranks that
  // are not in the set. Must not outlive this object.
  std::unique_ptr<Collective> subset(const std::vector<int>& ranks);

 private:
  struct Parts {
    std::unique_ptr<Endpoint> endpoint;  // null in a subset
    std::shared_ptr<collective::ProcessGroup> group;
    std::vector<std::string> hosts;  // by rank, as peers dial them
  };
  static Parts joined(const Config& config);
  explicit Collective(Parts parts);

  Parts parts_;
  std::uint64_t subsets_ = 0;
};

}  // namespace dpwa
