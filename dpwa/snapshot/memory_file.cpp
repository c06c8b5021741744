#include "dpwa/snapshot/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <limits>
#include <string>
#include <utility>

#include "dpwa/snapshot/aligned_mapping.h"

namespace dpwa {
namespace {

using Layout = MemoryFileLayout;

#ifdef F_SEAL_FUTURE_WRITE
constexpr int seal_future_write = F_SEAL_FUTURE_WRITE;
#else
constexpr int seal_future_write = 0x0010;
#endif

// The mapping of this process stays writable; every later one is not, where the kernel can do that
// (Linux 5.1). Without it a process of the same user could write, which it can in other ways too.
bool seal(int descriptor) {
  if (::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return false;
  ::fcntl(descriptor, F_ADD_SEALS, seal_future_write);
  return ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL) == 0;
}

}  // namespace

std::shared_ptr<MemoryFile> MemoryFile::create(std::size_t data_bytes) {
  if (data_bytes == 0 || data_bytes > std::numeric_limits<off_t>::max() / 2) return nullptr;
  const std::string name = name_of(::getpid());
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::size_t bytes = Layout::file_bytes(data_bytes);
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  const bool huge = data_bytes >= huge_page_bytes;
  std::byte* data =
      map_aligned(bytes, huge ? huge_page_bytes : page_bytes, PROT_READ | PROT_WRITE, file.get());
  if (data == nullptr) return nullptr;
  std::shared_ptr<MemoryFile> result(new MemoryFile(std::move(file), data, data_bytes));
  touch_shared_pages(data, bytes);
  return seal(result->descriptor()) ? result : nullptr;
}

std::string MemoryFile::name_of(std::int64_t pid) {
  return std::string(name_prefix) + std::to_string(pid);
}

MemoryFile::~MemoryFile() {
  ::munmap(data_, Layout::file_bytes(data_bytes_));
}

std::atomic_ref<std::uint64_t> MemoryFile::counter() const {
  auto* word = reinterpret_cast<std::uint64_t*>(data_ + Layout::generation_offset(data_bytes_));
  return std::atomic_ref<std::uint64_t>(*word);
}

void MemoryFile::begin_write() {
  counter().store(generation() | 1, std::memory_order_relaxed);
  // A reader that sees any byte of the write sees the odd generation too.
  std::atomic_thread_fence(std::memory_order_release);
}

void MemoryFile::end_write() {
  counter().store(generation() + 1, std::memory_order_release);
}

}  // namespace dpwa
