#include "dpwa/snapshot/aligned_buffer.h"

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <new>

#include "dpwa/snapshot/aligned_mapping.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {
namespace {

// Memory was refused: says how much, without asking for more.
class BufferRefused : public std::bad_alloc {
 public:
  explicit BufferRefused(std::size_t bytes) {
    std::snprintf(text_.data(), text_.size(),
                  "no memory for a buffer of %.1f MiB; a node needs five times the size of its "
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
  buffer.foreign_ = false;
  return buffer;
}

BufferAllocator shared_where_possible(BufferAllocator allocate) {
  const bool foreign = allocate(1).foreign();
  if (foreign) return allocate;
  return [](std::size_t bytes) { return AlignedBuffer::shared(bytes); };
}

}  // namespace dpwa
