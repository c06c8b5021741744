#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "dpwa/base/file_descriptor.h"

namespace dpwa::attach {

// The parameters of a model as memory of two processes: the trainer computes on it, its node
// process publishes and blends there, never both at once. A file without a name (memfd) that can
// neither shrink nor grow, zeroed; it goes with the last process that has it.
class SharedRegion {
 public:
  // Throws std::bad_alloc.
  static std::shared_ptr<SharedRegion> create(std::size_t bytes);
  // That of another process: `bytes` of parameters. Null for a file that is shorter, or that could
  // shrink under the reader.
  static std::shared_ptr<SharedRegion> open(FileDescriptor file, std::size_t bytes);

  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  std::span<std::byte> bytes() { return {data_, bytes_}; }
  int descriptor() const { return file_.get(); }

 private:
  SharedRegion(FileDescriptor file, std::byte* data, std::size_t bytes)
      : file_(std::move(file)), data_(data), bytes_(bytes) {}

  const FileDescriptor file_;
  std::byte* const data_;  // mapped_bytes(bytes_) long
  const std::size_t bytes_;
};

}  // namespace dpwa::attach
