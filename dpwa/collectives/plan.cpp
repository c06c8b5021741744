#include "dpwa/collectives/plan.h"

#include <algorithm>

#include "dpwa/collectives/parts.h"

namespace dpwa::collectives {
namespace {

// Up to so many members, one message to each costs less than the wait for a further step.
constexpr int most_directly = 8;
// Above, a member that sends to all others at once is bound by bandwidth, not by messages.
constexpr std::size_t least_bulk_bytes = std::size_t{32} << 10;
// Bytes that a member receives in an all-reduce in one step; more go in parts.
constexpr std::size_t most_whole_bytes = std::size_t{64} << 10;
// Bytes of the chunks that a member combines at a time: they stay in the second-level cache.
constexpr std::size_t chunk_budget_bytes = std::size_t{512} << 10;
constexpr std::size_t least_chunk_bytes = std::size_t{16} << 10;
constexpr std::size_t most_chunk_bytes = std::size_t{128} << 10;
// With more members, the flows of all to one at once would crowd the port of its switch.
constexpr int most_in_parts = 16;
constexpr std::size_t broadcast_chunk_bytes = std::size_t{256} << 10;

}  // namespace

AllreducePlan plan_allreduce(std::size_t bytes, DType type, int size) {
  const auto others = static_cast<std::size_t>(std::max(size - 1, 1));
  if (bytes <= most_whole_bytes / others) return {AllreducePlan::Way::whole, 0};
  // A ring would round partial sums of 16 bits at every member.
  const bool is_half = type == DType::float16 || type == DType::bfloat16;
  const std::size_t per_part = bytes / static_cast<std::size_t>(std::max(size, 1));
  if (size > most_in_parts && !is_half && per_part >= least_chunk_bytes)
    return {AllreducePlan::Way::ring, most_chunk_bytes};
  const std::size_t chunk =
      std::clamp(chunk_budget_bytes / others, least_chunk_bytes, most_chunk_bytes);
  return {AllreducePlan::Way::parts, chunk / part_unit * part_unit};
}

bool sends_directly(std::size_t bytes, int size) {
  return size <= most_directly || bytes >= least_bulk_bytes;
}

BroadcastPlan plan_broadcast(std::size_t bytes, int size) {
  const bool chain = size > 2 && bytes >= 4 * broadcast_chunk_bytes;
  return {chain, broadcast_chunk_bytes};
}

Part byte_part_of(std::size_t bytes, int parts, int index) {
  const auto [begin, end] = part_of(bytes, parts, index);
  return {begin, end - begin};
}

Part chunk_of(const Part& part, std::size_t chunk_bytes, std::size_t index) {
  const std::size_t from = std::min(part.bytes, index * chunk_bytes);
  return {part.begin + from, std::min(chunk_bytes, part.bytes - from)};
}

std::size_t chunks_of(std::size_t bytes, int parts, std::size_t chunk_bytes) {
  std::size_t largest = 0;
  for (int index = 0; index < parts; ++index)
    largest = std::max(largest, byte_part_of(bytes, parts, index).bytes);
  return (largest + chunk_bytes - 1) / chunk_bytes;
}

}  // namespace dpwa::collectives
