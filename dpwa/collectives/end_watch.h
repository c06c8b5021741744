#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/ipc/unix_socket.h"

namespace dpwa::collectives {

// Notices the end of the other members on this host by the end of the sockets over which they met.
class EndWatch {
 public:
  // `ended` is called on a thread of this object, with the rank of each member that ends, and
  // whether it has said farewell.
  EndWatch(std::vector<std::pair<int, ipc::MessageSocket>> sockets,
           std::function<void(int rank, bool in_order)> ended);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // This member ends in order. Before or after it others do.
  void say_farewell() noexcept;

 private:
  void work();

  std::vector<std::pair<int, ipc::MessageSocket>> sockets_;
  const std::function<void(int, bool)> ended_;
  const FileDescriptor ends_;  // readable once this object ends
  std::thread thread_;
};

}  // namespace dpwa::collectives
