#include "dpwa/net/same_host/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "dpwa/net/same_host/descriptors.h"
#include "dpwa/snapshot/aligned_mapping.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::same_host {

using Layout = MemoryFileLayout;

namespace {

#ifdef MADV_POPULATE_READ
constexpr int advice_populate = MADV_POPULATE_READ;
#else
constexpr int advice_populate = 22;
#endif

// Null: `fault` says why.
const std::byte* map(const FileDescriptor& file, std::size_t data_bytes, std::string& fault) {
  fault = "sent no memory";
  if (!file.valid()) return nullptr;
  fault = "sent memory that can shrink";
  const int seals = ::fcntl(file.get(), F_GET_SEALS);  // fails for all but memory files
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return nullptr;
  fault = "sent memory of another size";
  const std::size_t bytes = Layout::file_bytes(data_bytes);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_size != static_cast<off_t>(bytes))
    return nullptr;
  fault = "sent memory that cannot be mapped";
  const bool huge = data_bytes >= huge_page_bytes;
  return map_aligned(bytes, huge ? huge_page_bytes : page_bytes, PROT_READ, file.get());
}

}  // namespace

boost::system::result<std::shared_ptr<Mapping>, std::string> Mapping::open(FileDescriptor file,
                                                                           std::size_t data_bytes) {
  std::string fault;
  const std::byte* data = map(file, data_bytes, fault);
  discard(std::move(file));  // the mapping stays
  if (data == nullptr) return fault;
  return std::shared_ptr<Mapping>(new Mapping(data, data_bytes));
}

Mapping::~Mapping() {
  ::munmap(const_cast<std::byte*>(data_), Layout::file_bytes(data_bytes_));
}

bool Mapping::populate(ByteRange range) {
  if (overlap(range, populated_) == range) return true;
  const std::size_t from = range.offset / page_bytes * page_bytes;
  auto* begin = const_cast<std::byte*>(data_ + from);
  // Before Linux 5.14 pages come one by one as they are read.
  if (::madvise(begin, range.end() - from, advice_populate) != 0 && errno != EINVAL) return false;
  if (range.offset == populated_.end()) {
    populated_.length += range.length;
  } else if (populated_.length == 0) {
    populated_ = range;
  }
  return true;
}

std::span<const std::byte> Mapping::bytes(ByteRange range) const {
  return {data_ + range.offset, range.length};
}

std::uint64_t Mapping::generation() const {
  const auto* word =
      reinterpret_cast<const std::uint64_t*>(data_ + Layout::generation_offset(data_bytes_));
  std::atomic_thread_fence(std::memory_order_acquire);
  return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(word))
      .load(std::memory_order_acquire);
}

}  // namespace dpwa::same_host
