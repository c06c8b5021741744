#include "dpwa/collectives/lent_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa::collectives {
namespace {

constexpr std::size_t first_buffer = page_bytes;
constexpr std::size_t first_free = first_buffer + LentMemory::buffers * LentMemory::buffer_bytes;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t buffer_at(std::size_t turn) {
  return first_buffer + turn % LentMemory::buffers * LentMemory::buffer_bytes;
}

constexpr std::size_t least_room = std::size_t{64} << 20;

// For what is allocated: a process whose gradients take more than half of the machine's memory has
// none for the rest. It is address space alone.
std::size_t wanted_room() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::size_t>(pages) * page_bytes / 2 : least_room;
}

std::shared_ptr<MemoryFile> new_file() {
  std::shared_ptr<MemoryFile> file;
  for (std::size_t room = wanted_room(); file == nullptr && room >= least_room; room /= 2) {
    file = MemoryFile::create(round_up(first_free + room, page_bytes), MemoryFile::Access::read,
                              "dpwa-collective", MemoryFile::Pages::when_used);
  }
  return file;
}

}  // namespace

std::shared_ptr<LentMemory> LentMemory::create() {
  auto file = new_file();
  if (file == nullptr || !file->populate({0, first_free})) return nullptr;
  std::shared_ptr<LentMemory> memory(new LentMemory);
  memory->board_ = new (file->data()) SharedBoard;
  // With it others can map the file to read it alone.
  const std::string own = "/proc/self/fd/" + std::to_string(file->descriptor());
  memory->for_others_ = FileDescriptor(::open(own.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory->for_others_.valid()) return nullptr;
  memory->file_ = std::move(file);
  return memory;
}

std::byte* LentMemory::buffer(std::size_t turn) {
  return file_->data() + buffer_at(turn);
}

std::shared_ptr<std::byte> LentMemory::allocate(std::size_t bytes) {
  if (bytes > file_->size()) return nullptr;
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), page_bytes);
  std::size_t offset = round_up(first_free, huge_page_bytes);
  const MutexLock lock(mutex_);
  for (const auto& [from, end] : taken_) {
    if (from - offset >= wanted) break;
    offset = end;
  }
  if (offset > file_->size() || file_->size() - offset < wanted) return nullptr;
  if (wanted >= huge_page_bytes)
    ::madvise(file_->data() + offset, wanted, MADV_HUGEPAGE);  // a hint
  taken_[offset] = offset + wanted;
  std::byte* const data = file_->data() + offset;
  // The file stays as long as what was allocated in it.
  return {data, [self = shared_from_this(), offset](std::byte*) { self->free(offset); }};
}

void LentMemory::free(std::size_t offset) {
  const MutexLock lock(mutex_);
  const auto taken = taken_.find(offset);
  DPWA_INVARIANT(taken != taken_.end(), "what is freed was allocated", offset);
  ::madvise(file_->data() + offset, taken->second - offset, MADV_REMOVE);
  taken_.erase(taken);
}

std::optional<std::size_t> LentMemory::offset_of(std::span<const std::byte> bytes) const {
  const std::byte* const begin = file_->data();
  const bool inside = bytes.data() >= begin + first_free && bytes.data() < begin + file_->size();
  if (!inside) return std::nullopt;
  return static_cast<std::size_t>(bytes.data() - begin);
}

boost::system::result<BorrowedMemory, std::string> BorrowedMemory::open(FileDescriptor file) {
  struct stat facts {};
  const std::size_t least = MemoryFileLayout::file_bytes(first_free);
  if (!file.valid() || ::fstat(file.get(), &facts) != 0 ||
      static_cast<std::size_t>(facts.st_size) < least)
    return std::string("sent no memory");
  const std::size_t bytes = static_cast<std::size_t>(facts.st_size) - page_bytes;
  auto memory = MemoryFile::open(std::move(file), bytes, MemoryFile::Access::read);
  if (!memory) return memory.error();
  return BorrowedMemory(*std::move(memory));
}

const SharedBoard& BorrowedMemory::board() const {
  return *std::launder(reinterpret_cast<const SharedBoard*>(file_->data()));
}

const std::byte* BorrowedMemory::buffer(std::size_t turn) const {
  return file_->data() + buffer_at(turn);
}

const std::byte* BorrowedMemory::at(std::uint64_t offset, std::size_t bytes) const {
  if (offset > file_->size() || file_->size() - offset < bytes) return nullptr;
  return file_->data() + offset;
}

}  // namespace dpwa::collectives
