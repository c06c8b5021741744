#pragma once

#include <unistd.h>

#include <utility>

namespace dpwa {

// Owns a descriptor of the operating system and closes it. Movable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (valid()) ::close(descriptor_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  bool valid() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Whether the process at the other end of a connected Unix socket belongs to the user of this
// process. The kernel answers.
bool is_same_user(int socket);

// Whether the other end of a connected socket sends nothing more, after what has come already. Does
// not wait.
bool has_hung_up(int socket);

// Opens the null device on each of the descriptors 0, 1 and 2 that is closed, so that no file or
// memory that is opened later gets a number to which messages are written. Reading such a
// descriptor 0 fails, and so does writing 1 or 2, as if they were closed. Returns whether all three
// are open.
//
// Every program that logs (dpwa/log/log.h) does so before its main() begins.
bool reserve_standard_descriptors();

}  // namespace dpwa
