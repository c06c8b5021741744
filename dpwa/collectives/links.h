#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/base/time.h"

namespace dpwa::collectives {

// The streams of bytes between one member of a group and each of the others, both ways, in order.
// Sends and receives are posted; advance() moves their bytes, of all peers and both directions at
// once, and nothing else does. So one thread drives all transfers and computes between them.
//
// One thread, except abort() and lost(): any. A posted span stays valid until it is complete, or
// until one of these functions has thrown; nothing touches it afterwards. A group that is broken,
// because a connection ended, a member aborted or nothing moved for too long, stays broken: every
// function then throws GroupBroken, and the other members are told.
class Links {
 public:
  virtual ~Links() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Numbers the sends to a peer, and the receives from it, in the order in which they are posted.
  using Ticket = std::uint64_t;

  // Queue behind what is already posted for that peer, which is another rank than the own. What has
  // no bytes takes no ticket of its own: the result is the last one.
  virtual Ticket send(int to, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(int from, std::span<std::byte> into) = 0;

  // Up to which ticket all are complete.
  virtual Ticket sent(int to) const = 0;
  virtual Ticket received(int from) const = 0;
  // Whether all that was posted is complete.
  virtual bool idle() const = 0;

  // Moves bytes until at least one more send or receive is complete. One must be under way.
  virtual void advance() = 0;
  // Throws if the group is broken.
  virtual void check() const = 0;

  // How long advance() may wait without a byte that moves.
  virtual void set_timeout(Duration timeout) = 0;
  // As Group has them.
  virtual void abort(int lost) noexcept = 0;
  virtual int lost() const = 0;

 protected:
  Links(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_;
  const int size_;
};

}  // namespace dpwa::collectives
