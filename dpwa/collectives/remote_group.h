#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "dpwa/collectives/group.h"
#include "dpwa/collectives/links.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collectives {

// A group whose members are connected by streams: those of different hosts. plan.h chooses how an
// all-reduce travels, by size alone. Numbers are combined in the order of ranks, except by the
// ring, whose order begins at another rank for each part.
//
// Threads: as Group.
class RemoteGroup final : public Group {
 public:
  explicit RemoteGroup(std::unique_ptr<Links> links);

  void allreduce(std::span<std::byte> data, DType type, Reduction reduction) override;
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                std::span<std::byte> into, std::span<const std::size_t> received) override;
  void barrier() override;

  void set_timeout(Duration timeout) override { links_->set_timeout(timeout); }
  void abort(int lost) noexcept override { links_->abort(lost); }
  int lost() const override { return links_->lost(); }

 private:
  template <typename Operation>
  void run(const Operation& operation);

  const std::unique_ptr<Links> links_;
  AlignedBuffer scratch_;  // kept from one operation to the next
};

}  // namespace dpwa::collectives
