#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/base/file_descriptor.h"

// Unix stream sockets between the processes of one user on one host. Their names are in the
// abstract namespace, so no file remains when a process ends. Every user of the host can bind such
// a name and connect to it, so each end asks the kernel for the user at the other end before it
// reads a byte. Apart from that the two ends trust each other: docs/SECURITY.md grants a user
// everything that belongs to that user.
namespace dpwa::ipc {

using boost::system::error_code;

// Throws std::system_error, e.g. of EADDRINUSE for a name that is taken.
FileDescriptor listen_at(const std::string& name);
// A connection to a process of this user, or the reason why there is none. Does not wait.
boost::system::result<FileDescriptor, std::string> connect_to(const std::string& name);
// The next connection from a process of this user. Not valid when there is none.
FileDescriptor accept_from(int listener);

// Whether the process at the other end of a new connection belongs to this user. If not, shuts it
// out.
bool admits(int socket);
// Ends a connection to another user and discards what was received. The descriptors among it may be
// of any kind. The last close of a TCP socket can block the closing thread for its linger time;
// here it does not.
void shut_out(int socket);

// Refuses new connections and ends those that were not accepted, as shut_out() does. Call it before
// a listening socket is closed: the close would also close descriptors that other users have sent.
void stop_listening(int listener);

// One read, in as many steps as it takes for the bytes to arrive.
class Read {
 public:
  // Reads at least `at_least` bytes into `target`. `kept` receives the descriptor that comes with
  // them; null: the kernel closes it.
  Read(std::span<std::byte> target, std::size_t at_least, FileDescriptor* kept)
      : target_(target), at_least_(at_least), kept_(kept) {}

  // Takes what has arrived. No error: done; would_block: call again when the socket is readable;
  // asio::error::eof: the other end has closed.
  error_code step(int socket);
  std::size_t bytes() const { return bytes_; }  // read so far

 private:
  const std::span<std::byte> target_;
  const std::size_t at_least_;
  FileDescriptor* const kept_;
  std::size_t bytes_ = 0;
};

// One write of all bytes, in as many steps as the other end needs to take them.
class Write {
 public:
  // `descriptor` (-1: none) travels with the first byte and stays open here.
  Write(std::span<const std::byte> bytes, int descriptor) : rest_(bytes), descriptor_(descriptor) {}

  error_code step(int socket);  // as in Read; would_block: call again when the socket is writable

 private:
  std::span<const std::byte> rest_;
  int descriptor_;
};

// How often a call that waits asks whether to continue.
inline constexpr auto look_every = std::chrono::milliseconds(200);

// The blocking side of a connection. A message is a u32 length in the host's byte order and that
// many bytes, with an optional descriptor. Either end may be killed or stopped at any moment, also
// in the middle of a message: a failure closes the socket, and nothing throws. One thread.
class MessageSocket {
 public:
  // A longer message is not sent. A longer announced length means that the other end speaks another
  // protocol.
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  MessageSocket() = default;
  explicit MessageSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void close() { socket_ = {}; }
  FileDescriptor release() { return std::move(socket_); }

  // False, and closed, when the other end is gone. Waits while the other end does not read.
  bool send(std::string_view message, int descriptor = -1);
  // The next message; `kept` as in Read. None, and closed, when the other end is gone or `give_up`
  // returns true; it is called every `look_every`.
  std::optional<std::string> receive(FileDescriptor* kept = nullptr,
                                     const std::function<bool()>& give_up = nullptr);

 private:
  bool read(std::span<std::byte> target, FileDescriptor* kept,
            const std::function<bool()>& give_up);

  FileDescriptor socket_;
};

// Waits until one of `sockets` is readable, a signal arrives or `patience` is over.
void wait_for_any(const std::vector<int>& sockets, std::chrono::milliseconds patience);
bool is_readable(int socket);
// Asks again and again, without sleeping, until `socket` is readable or `patience` is over: to be
// woken on an idle processor takes tens of microseconds. A process with one processor, which the
// other end needs, does not ask at all.
void expect_soon(int socket, std::chrono::microseconds patience);

}  // namespace dpwa::ipc
