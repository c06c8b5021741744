#include "dpwa/parallel/shared_cursor.h"

#include <algorithm>

namespace dpwa {

ItemRange SharedCursor::all_parts(std::uint64_t size) const {
  if (ended()) return {position_, 0};
  return {position_, std::min(size * batch_, end_ - position_)};
}

ItemRange SharedCursor::part(std::uint64_t rank, std::uint64_t size) const {
  const ItemRange all = all_parts(size);
  const std::uint64_t parts = parts_of_at_least(all.count, size, least_);
  if (rank >= parts) return {all.end(), 0};
  const ItemRange part = shard(all.count, parts, rank);
  return {all.from + part.from, part.count};
}

}  // namespace dpwa
