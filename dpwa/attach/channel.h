#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/file_descriptor.h"

namespace dpwa::attach {

// How often whoever waits asks whether it still should.
inline constexpr auto look_every = std::chrono::milliseconds(200);

// Messages between a trainer and its node process, over a Unix socket of the abstract namespace:
// a u32 length in the host's byte order, then so many bytes; a descriptor may come along. Either
// end may be killed at any moment: what fails closes the channel, nothing throws.
class Channel {
 public:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  Channel() = default;
  explicit Channel(FileDescriptor socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.valid(); }
  int socket() const { return socket_.get(); }
  void close() { socket_ = {}; }

  // False, and closed, when the other end is gone or takes nothing.
  bool send(std::string_view message, int descriptor = -1);
  // The next message, and into `descriptor` what came along. None, and closed: the other end is
  // gone, or `give_up` said so, which is asked several times a second.
  std::optional<std::string> receive(FileDescriptor* descriptor = nullptr,
                                     const std::function<bool()>& give_up = nullptr);

 private:
  bool receive_all(char* target, std::size_t bytes, FileDescriptor* descriptor,
                   const std::function<bool()>& give_up);
  FileDescriptor socket_;
};

// The name under which the node process of this node listens, of this user on this host. By the
// port as well, so that two clusters of one name can run side by side.
std::string socket_name(const std::string& cluster, const std::string& node, std::uint16_t port);

// Throws std::runtime_error that says what is in the way, e.g. a node process that runs already.
FileDescriptor listen_at(const std::string& name);
// A channel that is not open: nobody listens there, or a process of another user does.
Channel connect_to(const std::string& name);
// The next that has connected, of the same user; not open: there was none.
Channel accept_from(int listener);

// Waits until one of `sockets` can be read, a signal comes or `patience` is over.
void wait_for_any(const std::vector<int>& sockets, std::chrono::milliseconds patience);
bool is_readable(int socket);

}  // namespace dpwa::attach
