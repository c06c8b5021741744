#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/collectives/group.h"
#include "dpwa/collectives/links.h"
#include "dpwa/collectives/remote_group.h"
#include "dpwa/collectives/shared_group.h"

namespace dpwa::collectives {

// Breaks both parts of a group of several hosts when one of them breaks. Any thread.
class HostsBreak {
 public:
  // `lost`: the rank to blame, in the whole group; -1: none.
  void break_all(int lost) noexcept;
  void join(Links* links, SharedGroup* local);  // null: they end

 private:
  Mutex mutex_;
  Links* links_ DPWA_GUARDED_BY(mutex_) = nullptr;
  SharedGroup* local_ DPWA_GUARDED_BY(mutex_) = nullptr;
  std::optional<int> lost_ DPWA_GUARDED_BY(mutex_);  // since it has broken
};

// A group whose members are on several hosts, with several members on some. What all combine or get
// crosses the network once for each host: numbers are combined on each host, then among the first
// members of the hosts, and handed over there. So the order in which they are combined follows from
// the ranks and the hosts. What differs for each pair of members goes from one to the other.
class HostsGroup final : public Group {
 public:
  // `hosts`: the ranks on each, in ascending order, the same on all members. `links`: between all
  // members. `local`: the members of the own host, in the order of their ranks. `broken`: is told
  // by whatever notices that one of them has broken.
  HostsGroup(std::vector<std::vector<int>> hosts, std::unique_ptr<Links> links,
             std::unique_ptr<SharedGroup> local, std::shared_ptr<HostsBreak> broken);
  ~HostsGroup() override;

  void allreduce(std::span<std::byte> data, DType type, Reduction reduction) override;
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                std::span<std::byte> into, std::span<const std::size_t> received) override;
  void barrier() override;
  void set_timeout(Duration timeout) override;
  void abort(int lost) noexcept override { broken_->break_all(lost); }
  int lost() const override { return links_->lost(); }

 private:
  template <typename Operation>
  void run(const Operation& operation);

  const std::vector<std::vector<int>> hosts_;
  const std::shared_ptr<HostsBreak> broken_;
  const std::unique_ptr<Links> links_;
  const std::unique_ptr<SharedGroup> local_;
  RemoteGroup all_;
  std::unique_ptr<RemoteGroup> firsts_;  // of each host; null: this is another one
};

}  // namespace dpwa::collectives
