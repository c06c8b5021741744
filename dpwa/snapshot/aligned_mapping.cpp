#include "dpwa/snapshot/aligned_mapping.h"

#include <sys/mman.h>

#include <cstdint>

namespace dpwa {

std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection, int descriptor) {
  constexpr std::size_t page_bytes = 4096;
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const std::size_t slack = alignment > page_bytes ? alignment : 0;
  // More than the system could ever give is refused here for a file too, not when it is touched.
  void* room = ::mmap(nullptr, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t lead = (address + alignment - 1) / alignment * alignment - address;
  if (descriptor >= 0) {
    const int kind = MAP_SHARED | MAP_FIXED;  // in place of a part of the room
    if (::mmap(begin + lead, bytes, protection, kind, descriptor, 0) == MAP_FAILED) {
      ::munmap(begin, bytes + slack);
      return nullptr;
    }
  }
  if (lead > 0) ::munmap(begin, lead);
  if (slack > lead) ::munmap(begin + lead + bytes, slack - lead);
  return begin + lead;
}

}  // namespace dpwa
