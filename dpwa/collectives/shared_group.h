#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/collectives/group.h"
#include "dpwa/collectives/lent_memory.h"
#include "dpwa/collectives/link_socket.h"
#include "dpwa/collectives/link_watch.h"
#include "dpwa/collectives/shared_wait.h"

namespace dpwa::collectives {

// A group whose members are on one host: each reads the data of the others where it lies, in memory
// that they lend. An all-reduce of numbers that all have allocated in lent memory copies nothing
// before it: each member combines its part of all inputs, in the order of ranks, and writes it
// where its own input was; then all take over the parts of the others. Other data goes through
// buffers, a piece at a time. Small data is combined by every member as a whole, after one wait.
class SharedGroup final : public Group {
 public:
  // `others` by rank; none at the own one. `processors`: that all of them share.
  SharedGroup(int rank, std::shared_ptr<LentMemory> own,
              std::vector<std::optional<BorrowedMemory>> others, std::size_t processors);
  ~SharedGroup() override;

  // The group breaks when a socket to another member ends without a farewell, and `on_broken` is
  // called, on another thread. `sockets` by rank. Once, before the first operation.
  void watch(std::vector<std::optional<LinkSocket>> sockets,
             std::function<void(int lost)> on_broken);

  // Memory for data that is combined often: see above. Null: there is none.
  std::shared_ptr<std::byte> allocate(std::size_t bytes) { return own_->allocate(bytes); }

  void allreduce(std::span<std::byte> data, DType type, Reduction reduction) override;
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                std::span<std::byte> into, std::span<const std::size_t> received) override;
  void barrier() override;
  void set_timeout(Duration timeout) override { wait_.set_timeout(timeout); }
  void abort(int lost) noexcept override { wait_.break_off(lost); }
  int lost() const override { return wait_.lost(); }
  bool is_broken() const { return wait_.is_broken(); }

 private:
  struct Numbers {
    DType type;
    Reduction reduction;
  };
  const std::byte* buffer_of(int rank, std::size_t turn) const;
  std::vector<const std::byte*> buffers_of_all(std::size_t turn) const;
  template <typename Operation>
  void run(const Operation& operation);
  void meet();  // all have come here
  void combine(std::span<std::byte> data, Numbers numbers);
  void gather(std::span<const std::byte> own, std::span<std::byte> all);
  void hand_out(std::span<std::byte> data, int root);
  void exchange(std::span<const std::byte> from, std::span<const std::size_t> sent,
                std::span<std::byte> into, std::span<const std::size_t> received);
  void allreduce_small(std::span<std::byte> data, Numbers numbers);
  void allreduce_pieces(std::span<std::byte> data, Numbers numbers, bool first_is_there);
  void allreduce_in_place(std::span<std::byte> data, const std::vector<const std::byte*>& inputs,
                          Numbers numbers);
  void copy_parts_of_others(std::span<std::byte> data, const std::vector<const std::byte*>& sources,
                            std::size_t number_bytes);
  std::vector<std::size_t> counts_of_all(std::span<const std::size_t> sent);

  const std::shared_ptr<LentMemory> own_;
  const std::vector<std::optional<BorrowedMemory>> others_;
  SharedWait wait_;
  std::atomic<bool> leaves_ = false;
  std::unique_ptr<LinkWatch> ends_;
  // Buffers are used in turn. Between two uses of one, two other turns have begun: all members have
  // left the first use by then, because each of them arrives once in every turn.
  std::size_t turn_ = 0;
  std::size_t places_used_ = 0;
};

}  // namespace dpwa::collectives
