#include "dpwa/snapshot/memory_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace dpwa {
namespace {

using Layout = MemoryFileLayout;

#ifdef MADV_POPULATE_READ
constexpr int advice_populate = MADV_POPULATE_READ;
#else
constexpr int advice_populate = 22;
#endif

constexpr std::size_t most_data_bytes = std::numeric_limits<off_t>::max() / 2;

// Null when the system refuses.
std::byte* map(const FileDescriptor& file, std::size_t data_bytes, int protection) {
  const bool huge = data_bytes >= huge_page_bytes;
  return map_aligned(Layout::file_bytes(data_bytes), huge ? huge_page_bytes : page_bytes,
                     protection, file.get());
}

}  // namespace

std::shared_ptr<MemoryFile> MemoryFile::create(std::size_t data_bytes, Access others,
                                               const std::string& name, Pages pages) {
  if (data_bytes > most_data_bytes) return nullptr;
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::size_t bytes = Layout::file_bytes(data_bytes);
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  std::byte* data = map(file, data_bytes, PROT_READ | PROT_WRITE);
  if (data == nullptr) return nullptr;
  std::shared_ptr<MemoryFile> memory(new MemoryFile(std::move(file), data, data_bytes));
  // Part of the protocol: readers may refuse a file that could shrink under them.
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const auto seal = [&](int all) { return ::fcntl(memory->descriptor(), F_ADD_SEALS, all) == 0; };
  // That seal would also keep the kernel from taking pages back (MADV_REMOVE).
  const bool gives_back = pages == Pages::when_used;
  const bool sealed = others == Access::read && !gives_back && seal(seals | F_SEAL_FUTURE_WRITE);
  if (!sealed && !seal(seals)) return nullptr;
  if (pages == Pages::touched) touch_shared_pages(data, bytes);
  return memory;
}

boost::system::result<std::shared_ptr<MemoryFile>, std::string> MemoryFile::open(
    FileDescriptor file, std::size_t data_bytes, Access access) {
  if (!file.valid()) return std::string("sent no memory");
  // A mapping whose file shrinks ends its reader with SIGBUS.
  if (const int seals = ::fcntl(file.get(), F_GET_SEALS); seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return std::string("sent memory that is not sealed against shrinking");
  // From here on its size does not fall.
  struct stat facts {};
  const auto bytes = static_cast<off_t>(Layout::file_bytes(data_bytes));
  if (data_bytes > most_data_bytes || ::fstat(file.get(), &facts) != 0 || facts.st_size != bytes)
    return std::string("sent memory of another size");
  // Its pages are of a pool that can run out, and then a reader ends with SIGBUS.
  struct statfs system {};
  if (::fstatfs(file.get(), &system) != 0 || system.f_type == HUGETLBFS_MAGIC)
    return std::string("sent memory of a pool of huge pages");
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  std::byte* data = map(file, data_bytes, protection);
  if (data == nullptr) return std::string("sent memory that cannot be mapped");
  return std::shared_ptr<MemoryFile>(new MemoryFile({}, data, data_bytes));
}

std::int64_t MemoryFile::own_pid() {
  return ::getpid();
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

std::uint64_t MemoryFile::generation() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return counter().load(std::memory_order_acquire);
}

bool MemoryFile::populate(ByteRange range) {
  if (overlap(range, populated_) == range) return true;
  const std::size_t from = range.offset / page_bytes * page_bytes;
  // Before Linux 5.14 pages become present one by one as they are read.
  if (::madvise(data_ + from, range.end() - from, advice_populate) != 0 && errno != EINVAL)
    return false;
  if (range.offset == populated_.end()) {
    populated_.length += range.length;
  } else if (populated_.length == 0) {
    populated_ = range;
  }
  return true;
}

}  // namespace dpwa
