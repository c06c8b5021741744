#pragma once

#include <atomic>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/invariant.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

// The layout of a memory file of `data_bytes`:
//   offset                        content
//   0                             the data
//   generation_offset(data_bytes) u64 generation in the host's byte order, in a page of its own
//   file_bytes(data_bytes)        end
struct MemoryFileLayout {
  static constexpr std::size_t generation_offset(std::size_t data_bytes) {
    return (data_bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  static constexpr std::size_t file_bytes(std::size_t data_bytes) {
    return generation_offset(data_bytes) + page_bytes;
  }
};

// Memory that processes of one user on one host share by passing its descriptor. It is a file
// without a name (memfd), so nothing remains when the processes end. A process that has mapped it
// keeps it when the others die. It has two uses:
// - A snapshot buffer: one process writes, others read. The generation tells a reader whether it
//   read a whole snapshot, as in a sequence lock: it is odd while the owner writes, and a new even
//   number after each write. One writing thread; any process may read the generation.
// - The parameters of an attached trainer: two processes write, never at once. No generation.
class MemoryFile {
 public:
  enum class Access { read, write };
  static constexpr std::string_view name_prefix = "dpwa-snapshot-";
  // The name for the snapshots of process `pid`. It appears only in /proc/PID/maps.
  static std::string name_of(std::int64_t pid);

  // A zeroed file, on huge pages where the system has them. `others`: what the kernel (from Linux
  // 5.1 on) allows the processes that it is shared with. `pages`: touched now, or one by one as
  // they are used; a page that the system then lacks ends the process. Null when the system refuses
  // the file or the memory.
  enum class Pages { touched, when_used };
  static std::shared_ptr<MemoryFile> create(std::size_t data_bytes, Access others = Access::read,
                                            const std::string& name = name_of(own_pid()),
                                            Pages pages = Pages::touched);
  // Maps the file of another process, or returns what is wrong with it, such as a size that does
  // not fit `data_bytes`. Closes the descriptor.
  static boost::system::result<std::shared_ptr<MemoryFile>, std::string> open(
      FileDescriptor file, std::size_t data_bytes, Access access);

  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::byte* data() { return data_; }  // with Access::read: read only
  std::size_t size() const { return data_bytes_; }
  std::span<const std::byte> bytes(ByteRange range) const {
    DPWA_INVARIANT(range.offset <= data_bytes_ && range.length <= data_bytes_ - range.offset,
                   "bytes are of the data of the file", range.offset, range.length, data_bytes_);
    return {data_ + range.offset, range.length};
  }
  int descriptor() const { return file_.get(); }  // -1 for a file of another process

  void begin_write();  // before the first byte is changed
  void end_write();    // after the last
  // Reads before this call saw the memory as it was during the returned generation.
  std::uint64_t generation() const;

  // Makes the pages of a range present, each page once. False when the system cannot do it. One
  // thread.
  bool populate(ByteRange range);

 private:
  MemoryFile(FileDescriptor file, std::byte* data, std::size_t data_bytes)
      : file_(std::move(file)), data_(data), data_bytes_(data_bytes) {}
  static std::int64_t own_pid();
  std::atomic_ref<std::uint64_t> counter() const;

  const FileDescriptor file_;
  std::byte* const data_;
  const std::size_t data_bytes_;
  ByteRange populated_;
};

}  // namespace dpwa
