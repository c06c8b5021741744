#include "dpwa/attach/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <limits>
#include <new>
#include <utility>

#include "dpwa/snapshot/aligned_mapping.h"

namespace dpwa::attach {
namespace {

// Of a model without parameters too: a page.
std::size_t mapped_bytes(std::size_t bytes) {
  return bytes / page_bytes * page_bytes + page_bytes;
}

std::byte* map(std::size_t bytes, int file) {
  const std::size_t alignment = bytes >= huge_page_bytes ? huge_page_bytes : page_bytes;
  return map_aligned(mapped_bytes(bytes), alignment, PROT_READ | PROT_WRITE, file);
}

}  // namespace

std::shared_ptr<SharedRegion> SharedRegion::create(std::size_t bytes) {
  if (bytes > std::numeric_limits<off_t>::max() / 2) throw std::bad_alloc();
  FileDescriptor file(::memfd_create("dpwa-parameters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(mapped_bytes(bytes))) != 0)
    throw std::bad_alloc();
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) throw std::bad_alloc();
  std::byte* data = map(bytes, file.get());
  if (data == nullptr) throw std::bad_alloc();
  touch_shared_pages(data, mapped_bytes(bytes));
  return std::shared_ptr<SharedRegion>(new SharedRegion(std::move(file), data, bytes));
}

std::shared_ptr<SharedRegion> SharedRegion::open(FileDescriptor file, std::size_t bytes) {
  if (!file.valid() || bytes > std::numeric_limits<off_t>::max() / 2) return nullptr;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  struct stat facts {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(file.get(), &facts) != 0 ||
      static_cast<std::size_t>(facts.st_size) < mapped_bytes(bytes))
    return nullptr;
  std::byte* data = map(bytes, file.get());
  if (data == nullptr) return nullptr;
  return std::shared_ptr<SharedRegion>(new SharedRegion(std::move(file), data, bytes));
}

SharedRegion::~SharedRegion() {
  ::munmap(data_, mapped_bytes(bytes_));
}

}  // namespace dpwa::attach
