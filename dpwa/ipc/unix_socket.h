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
// abstract namespace, so nothing is left behind however a process ends. Every user of the host can
// bind such a name and call it: each end asks the kernel for the user at the other end before it
// reads a byte. Beyond that the two ends trust each other, as docs/SECURITY.md grants a user
// everything that is its own.
namespace dpwa::ipc {

using boost::system::error_code;

// Throws std::system_error, e.g. of EADDRINUSE for a name that is taken.
FileDescriptor listen_at(const std::string& name);
// A connection to a process of this user, or why there is none. Does not wait.
boost::system::result<FileDescriptor, std::string> connect_to(const std::string& name);
// The next connection of a process of this user. Not valid: there was none.
FileDescriptor accept_from(int listener);

// Whether the process at the other end of a new connection is of this user; if not, it is shut out.
bool admits(int socket);
// Ends a connection to another user and throws away what has come. Its descriptors may be anything:
// the last close of a TCP socket waits as long as its linger time, in the thread that closes it.
// Not here.
void shut_out(int socket);

// Refuses new connections and ends those that were not accepted, as shut_out() does. Call it before
// a listening socket is closed, which would close what other users have sent to it.
void stop_listening(int listener);

// One read, in as many steps as the bytes come in.
class Read {
 public:
  // At least `at_least` bytes into `target`. `kept` becomes the descriptor that comes along; null:
  // the kernel closes it.
  Read(std::span<std::byte> target, std::size_t at_least, FileDescriptor* kept)
      : target_(target), at_least_(at_least), kept_(kept) {}

  // Takes what is there. No error: done; would_block: call again when the socket can be read;
  // asio::error::eof: the other end has closed.
  error_code step(int socket);
  std::size_t bytes() const { return bytes_; }  // that have come

 private:
  const std::span<std::byte> target_;
  const std::size_t at_least_;
  FileDescriptor* const kept_;
  std::size_t bytes_ = 0;
};

// One write of all bytes, in as many steps as the other end takes them.
class Write {
 public:
  // `descriptor` (-1: none) travels beside the first byte and stays open here.
  Write(std::span<const std::byte> bytes, int descriptor) : rest_(bytes), descriptor_(descriptor) {}

  error_code step(int socket);  // as Read's; would_block: call again when the socket can be written

 private:
  std::span<const std::byte> rest_;
  int descriptor_;
};

// How often a waiting call asks whether to go on.
inline constexpr auto look_every = std::chrono::milliseconds(200);

// The blocking side of a connection: messages of a u32 length in the host's byte order and that
// many bytes, and a descriptor beside them. Either end may be killed or stopped at any moment, in
// the middle of a message too: what fails closes the socket, nothing throws. One thread.
class MessageSocket {
 public:
  // A longer message is not sent. An announced length beyond it means that the other end speaks
  // another protocol.
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  MessageSocket() = default;
  explicit MessageSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void close() { socket_ = {}; }

  // False, and closed, when the other end is gone. Waits while it takes nothing.
  bool send(std::string_view message, int descriptor = -1);
  // The next message; `kept`: as Read's. None, and closed: the other end is gone, or `give_up` said
  // so, which is asked every `look_every`.
  std::optional<std::string> receive(FileDescriptor* kept = nullptr,
                                     const std::function<bool()>& give_up = nullptr);

 private:
  bool read(std::span<std::byte> target, FileDescriptor* kept,
            const std::function<bool()>& give_up);

  FileDescriptor socket_;
};

// Waits until one of `sockets` can be read, a signal comes or `patience` is over.
void wait_for_any(const std::vector<int>& sockets, std::chrono::milliseconds patience);
bool is_readable(int socket);

}  // namespace dpwa::ipc
