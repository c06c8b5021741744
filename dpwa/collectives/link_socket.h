#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/stream.h"

namespace dpwa::net {
class TlsRecords;
}

namespace dpwa::collectives {

// A connection between two members whose identity is proved: TCP, or TLS over it, or a Unix socket.
// Nothing waits: the owner polls the descriptor. One thread.
class LinkSocket {
 public:
  explicit LinkSocket(net::Stream::Released connection);
  explicit LinkSocket(FileDescriptor plain);  // of a stream without TLS
  LinkSocket(LinkSocket&&) noexcept;
  LinkSocket& operator=(LinkSocket&&) noexcept;
  ~LinkSocket();

  int descriptor() const { return socket_.get(); }

  // Reads into the parts, one after the other; 0: nothing is there now. A failure: nothing more
  // comes.
  net::IoResult<std::size_t> read_some(std::span<const iovec> parts);
  // Writes the first bytes of the parts; 0: the kernel takes nothing now, and the next call has the
  // same bytes. What was written has left this process.
  net::IoResult<std::size_t> write_some(std::span<const iovec> parts);

  // The next poll reports reading only once so many bytes are there, or far fewer than that: it
  // then does not wake for every segment. So many are still to come.
  void sleep_until(std::size_t bytes);

 private:
  net::IoResult<std::size_t> read_records(std::span<const iovec> parts);
  net::IoResult<std::size_t> write_records(std::span<const iovec> parts);
  net::IoResult<bool> flush();

  FileDescriptor socket_;
  std::unique_ptr<net::TlsRecords> tls_;  // null: plain TCP
  std::size_t sealed_plain_ = 0;          // bytes that are sealed, and have not left
  std::size_t sealed_sent_ = 0;           // of their records
  int low_water_ = 1;                     // as the kernel has it
};

}  // namespace dpwa::collectives
