#pragma once

#include <cstddef>
#include <span>

#include "dpwa/collectives/links.h"

namespace dpwa::collectives {

// The operations of a RemoteGroup that compute nothing, over the links of its members. All members
// call the same one with equal sizes. They throw as Links does.

// A rank of a group that is counted on beyond its end, or below zero.
inline int wrapped(int rank, int size) {
  const int rest = rank % size;
  return rest < 0 ? rest + size : rest;
}

void await_received(Links& links, int from, Links::Ticket ticket);
// Until all that was posted is complete.
void finish(Links& links);

// Fills `all` with the `own` of every member, in the order of ranks; `own` may lie in its place
// there.
void gather_all(Links& links, std::span<const std::byte> own, std::span<std::byte> all);
// Fills `data` with that of `root`.
void spread(Links& links, std::span<std::byte> data, int root);
// sent[r] bytes of `from` to each rank r, received[r] bytes of it.
void exchange(Links& links, std::span<const std::byte> from, std::span<const std::size_t> sent,
              std::span<std::byte> into, std::span<const std::size_t> received);
// Until all members have called it.
void meet(Links& links);

}  // namespace dpwa::collectives
