#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/snapshot/aligned_mapping.h"

namespace dpwa {

// What lies where in a memory file of `data_bytes`:
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

// Memory of this process that other processes can map for reading, given the descriptor: a file
// without a name (memfd), so nothing is left behind however the process ends. Sealed: nobody can
// shrink it under a reader, and no new mapping can write to it. The generation tells a reader
// whether what it read was whole, as in a sequence lock: odd while the owner writes, another even
// number after each write. One writing thread; anyone may read the generation.
class MemoryFile {
 public:
  // Zeroed, every page touched, on huge pages where the system has them. Null when the system
  // gives no such file or not so much memory.
  static std::shared_ptr<MemoryFile> create(std::size_t data_bytes);
  // Of the files of process `pid`. It shows in /proc/PID/maps, nowhere else.
  static std::string name_of(std::int64_t pid);
  static constexpr std::string_view name_prefix = "dpwa-snapshot-";

  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::byte* data() { return data_; }
  int descriptor() const { return file_.get(); }

  void begin_write();  // before the first byte is changed
  void end_write();    // after the last
  std::uint64_t generation() const { return counter().load(std::memory_order_acquire); }

 private:
  MemoryFile(FileDescriptor file, std::byte* data, std::size_t data_bytes)
      : file_(std::move(file)), data_(data), data_bytes_(data_bytes) {}
  std::atomic_ref<std::uint64_t> counter() const;

  const FileDescriptor file_;
  std::byte* const data_;
  const std::size_t data_bytes_;
};

}  // namespace dpwa
