#pragma once

#include <cstddef>
#include <cstdint>

#include "interpolation/kernels/dtype.h"

namespace dpwa::collectives {

// How an all-reduce travels between the members of a RemoteGroup.
struct AllreducePlan {
  enum class Way : std::uint8_t {
    whole,  // every member gets the numbers of all and combines them: fewest messages
    parts,  // each member combines one part and gives it to the others: fewest bytes
    ring,   // the same bytes, along a ring: two connections of each member are in use at a time
  };
  Way way = Way::whole;
  std::size_t chunk_bytes = 0;  // of parts and ring; a multiple of part_unit of parts.h

  bool operator==(const AllreducePlan&) const = default;
};

// The same on all members, because it depends on nothing else. Pure.
AllreducePlan plan_allreduce(std::size_t bytes, DType type, int size);

// Whether all members send to all others at once, rather than in a number of steps that grows with
// the logarithm of the size: fewer steps against fewer messages. Pure.
bool sends_directly(std::size_t bytes, int size);

// The bytes of a broadcast that each member passes on at once, and whether they go along a chain:
// fewest bytes for each member, rather than down a tree: fewest steps. Pure.
struct BroadcastPlan {
  bool chain = false;
  std::size_t chunk_bytes = 0;
};
BroadcastPlan plan_broadcast(std::size_t bytes, int size);

struct Part {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

// Part `index` of so many bytes, as parts.h has it for numbers. Pure.
Part byte_part_of(std::size_t bytes, int parts, int index);
// Chunk `index` of a part; empty beyond its end. Pure.
Part chunk_of(const Part& part, std::size_t chunk_bytes, std::size_t index);
// The chunks of the largest part. Pure.
std::size_t chunks_of(std::size_t bytes, int parts, std::size_t chunk_bytes);

}  // namespace dpwa::collectives
