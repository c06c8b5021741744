#include "dpwa/snapshot/aligned_buffer.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "dpwa/base/invariant.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
namespace {

#ifdef MADV_COLLAPSE
constexpr int advice_collapse = MADV_COLLAPSE;
#else
constexpr int advice_collapse = 25;
#endif

// Memory was refused. what() states how much, without allocating.
class BufferRefused : public std::bad_alloc {
 public:
  explicit BufferRefused(std::size_t bytes) {
    std::snprintf(text_.data(), text_.size(),
                  "out of memory for a buffer of %.1f MiB; a node needs five times the size of its "
                  "parameters",
                  static_cast<double>(bytes) / (1 << 20));
  }
  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 128> text_{};
};

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection, int descriptor) {
  DPWA_INVARIANT(std::has_single_bit(alignment), "an alignment is a power of two", alignment);
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const std::size_t slack = alignment > page_bytes ? alignment : 0;
  // A size that the system can never give is refused here, for a file too, and not when the pages
  // are touched.
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

// Most systems have huge pages for shared memory switched off. Collapsing pages is allowed there
// nevertheless (Linux 6.1) and is ten times as fast as touching small pages. It needs one present
// page in each huge page. Failure only costs speed.
void touch_shared_pages(std::byte* data, std::size_t bytes) {
  if (bytes >= huge_page_bytes) {
    ::madvise(data, bytes, MADV_HUGEPAGE);
    for (std::size_t at = 0; at < bytes; at += huge_page_bytes) data[at] = std::byte{0};
    ::madvise(data, bytes / huge_page_bytes * huge_page_bytes, advice_collapse);
  }
  std::memset(data, 0, bytes);
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= huge_page_bytes;
  const std::size_t mapped = round_up(bytes, page_bytes);
  std::byte* data =
      map_aligned(mapped, huge ? huge_page_bytes : page_bytes, PROT_READ | PROT_WRITE);
  if (data == nullptr) throw BufferRefused(bytes);
  memory_ =
      std::shared_ptr<std::byte>(data, [mapped](std::byte* mapping) { ::munmap(mapping, mapped); });
  if (huge) ::madvise(data, mapped, MADV_HUGEPAGE);  // a hint: failure costs speed only
  std::memset(data, 0, mapped);
}

AlignedBuffer AlignedBuffer::shared(std::size_t bytes) {
  auto file = bytes > 0 ? MemoryFile::create(bytes) : nullptr;
  if (file == nullptr) return AlignedBuffer(bytes);
  AlignedBuffer buffer(std::shared_ptr<std::byte>(file, file->data()), bytes);
  buffer.file_ = std::move(file);
  return buffer;
}

void AlignedBuffer::keep(std::shared_ptr<void> owner) {
  struct Both {
    std::shared_ptr<std::byte> memory;
    std::shared_ptr<void> owner;  // ends first
  };
  std::byte* const data = memory_.get();
  const auto both = std::make_shared<Both>(Both{std::move(memory_), std::move(owner)});
  memory_ = std::shared_ptr<std::byte>(both, data);
}

}  // namespace dpwa
