#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/threads.h"
#include "dpwa/collectives/shared_board.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::collectives {

// The memory that a member lends the others of its host: its board, the buffers through which it
// hands over data, and what is allocated in it, which they read in place. The file has room for
// more than it takes: a page counts once it is used.
class LentMemory : public std::enable_shared_from_this<LentMemory> {
 public:
  // Of each of the buffers that an operation uses in turn.
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
  static constexpr std::size_t buffers = 3;

  // Null when the system refuses it.
  static std::shared_ptr<LentMemory> create();

  SharedBoard& board() { return *board_; }
  std::byte* buffer(std::size_t turn);
  const std::shared_ptr<MemoryFile>& file() const { return file_; }
  int descriptor() const { return for_others_.get(); }  // for the other members

  // Aligned to a page. Null: there is no room. Any thread. What is
  // freed is given back to the system.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);
  // None: the bytes do not lie in this memory.
  std::optional<std::size_t> offset_of(std::span<const std::byte> bytes) const;

 private:
  LentMemory() = default;
  void free(std::size_t offset);

  std::shared_ptr<MemoryFile> file_;
  FileDescriptor for_others_;
  SharedBoard* board_ = nullptr;
  Mutex mutex_;
  std::map<std::size_t, std::size_t> taken_ DPWA_GUARDED_BY(mutex_);  // ends, by offset
};

// The memory of another member, to be read.
class BorrowedMemory {
 public:
  // None, and why, as MemoryFile::open().
  static boost::system::result<BorrowedMemory, std::string> open(FileDescriptor file);

  const SharedBoard& board() const;
  const std::byte* buffer(std::size_t turn) const;
  // Null: it has no such bytes.
  const std::byte* at(std::uint64_t offset, std::size_t bytes) const;

 private:
  explicit BorrowedMemory(std::shared_ptr<MemoryFile> file) : file_(std::move(file)) {}

  std::shared_ptr<MemoryFile> file_;
};

}  // namespace dpwa::collectives
