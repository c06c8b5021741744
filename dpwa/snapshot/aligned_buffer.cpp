#include "dpwa/snapshot/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace dpwa {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A mapping of `bytes` that begins on a multiple of `alignment`.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) {
  const std::size_t slack = alignment > page_bytes ? alignment : 0;
  void* base =
      ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(base);
  const std::size_t lead = round_up(reinterpret_cast<std::uintptr_t>(begin), alignment) -
                           reinterpret_cast<std::uintptr_t>(begin);
  if (lead > 0) ::munmap(begin, lead);
  if (slack > lead) ::munmap(begin + lead + bytes, slack - lead);
  return begin + lead;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= huge_page_bytes;
  const std::size_t mapped = round_up(bytes, page_bytes);
  std::byte* data = map_aligned(mapped, huge ? huge_page_bytes : page_bytes);
  memory_ =
      std::shared_ptr<std::byte>(data, [mapped](std::byte* mapping) { ::munmap(mapping, mapped); });
  if (huge) ::madvise(data, mapped, MADV_HUGEPAGE);  // a hint: failure costs speed only
  std::memset(data, 0, mapped);
}

}  // namespace dpwa
