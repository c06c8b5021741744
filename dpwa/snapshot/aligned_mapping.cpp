#include "dpwa/snapshot/aligned_mapping.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace dpwa {
namespace {

#ifdef MADV_COLLAPSE
constexpr int advice_collapse = MADV_COLLAPSE;
#else
constexpr int advice_collapse = 25;
#endif

}  // namespace

std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection, int descriptor) {
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

// Huge pages for shared memory are off on most systems; collapsing is allowed there all the same
// (Linux 6.1), and ten times as fast as touching small pages. It wants one page of each to be
// there. Failure costs speed only.
void touch_shared_pages(std::byte* data, std::size_t bytes) {
  if (bytes >= huge_page_bytes) {
    ::madvise(data, bytes, MADV_HUGEPAGE);
    for (std::size_t at = 0; at < bytes; at += huge_page_bytes) data[at] = std::byte{0};
    ::madvise(data, bytes / huge_page_bytes * huge_page_bytes, advice_collapse);
  }
  std::memset(data, 0, bytes);
}

}  // namespace dpwa
