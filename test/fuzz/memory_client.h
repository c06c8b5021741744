#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpwa/base/file_descriptor.h"

namespace dpwa::test {

// The arguments of a fuzzer's operations, in the order in which they are asked for. Zeros follow
// the last byte.
class Input {
 public:
  explicit Input(std::span<const std::byte> rest) : rest_(rest) {}

  bool over() const { return rest_.empty(); }
  unsigned byte();
  // A byte below 200 stands for itself, and others for numbers near the bounds of something.
  std::uint64_t number();
  std::span<const std::byte> bytes(std::size_t count);

 private:
  std::span<const std::byte> rest_;
};

// The other end of the Unix socket over which memory is exchanged: it breaks the rules.
class MemoryGuest {
 public:
  explicit MemoryGuest(FileDescriptor socket) : socket_(std::move(socket)) {}
  ~MemoryGuest();
  MemoryGuest(const MemoryGuest&) = delete;
  MemoryGuest& operator=(const MemoryGuest&) = delete;

  void send(std::span<const std::byte> frame, int descriptor = -1);
  // As worker w1 or w2, one that is not in the file, or of another cluster.
  void hello(unsigned name, unsigned incarnation);
  // SHARE with a memory file of one page, of the largest value, of one page that is not sealed, of
  // another size than it says, with another descriptor or with none.
  void share(std::uint32_t number, std::uint64_t bytes, unsigned kind);
  // Fills one of the files with this value, and then says that its generation is that one.
  void write(unsigned file, unsigned value, std::uint64_t generation);
  void drain();  // reads and forgets what has come

 private:
  struct Mapped {
    std::byte* data = nullptr;
    std::size_t bytes = 0;  // of the data
  };
  FileDescriptor memory_file(std::size_t bytes, bool sealed);

  FileDescriptor socket_;
  std::vector<Mapped> files_;
};

}  // namespace dpwa::test
