#pragma once

#include <cstddef>
#include <span>

#include "dpwa/collectives/group.h"
#include "dpwa/collectives/links.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collectives {

// Numbers that are combined.
struct Numbers {
  std::span<std::byte> bytes;
  DType type = DType::float32;
  Reduction reduction = Reduction::sum;
};

// The ways of AllreducePlan, over the links of the members of a RemoteGroup. All members call the
// same one with equal sizes. Each number is combined once by one member whose result the others
// copy, or by all in the same order: all members get the same bits. `scratch` grows as needed and
// may be used again. They throw as Links does.
void allreduce_whole(Links& links, const Numbers& numbers, AlignedBuffer& scratch);
void allreduce_in_parts(Links& links, const Numbers& numbers, std::size_t chunk_bytes,
                        AlignedBuffer& scratch);
void allreduce_by_ring(Links& links, const Numbers& numbers, std::size_t chunk_bytes,
                       AlignedBuffer& scratch);

}  // namespace dpwa::collectives
