#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/snapshot/memory_file.h"
#include "dpwa/wire/messages.h"
#include "test/support/raw_socket.h"

namespace dpwa::test {

// A peer of this host that asks a node for its memory and then keeps it for as long as the test
// likes, as one that was stopped does. Blocking; one thread. Throws std::runtime_error where the
// node does not answer as it should.
class MemoryReader {
 public:
  // Introduces itself over TCP and at the Unix socket that it is then offered, and maps the buffers
  // that are shared there.
  MemoryReader(std::uint16_t port, const wire::Hello& hello);

  // None: declined; the reply is in last_reply().
  std::optional<wire::Mapped> pull(std::chrono::milliseconds deadline);
  wire::MessageType last_reply() const { return last_reply_; }
  const MemoryFile& mapping() const { return *mapping_; }  // of the last pull
  bool release(bool landed);
  RawSocket& tcp() { return tcp_; }
  std::size_t buffers() const { return buffers_.size(); }

 private:
  RawSocket tcp_;
  std::optional<RawSocket> unix_;
  std::vector<std::shared_ptr<MemoryFile>> buffers_;  // by number
  std::shared_ptr<MemoryFile> mapping_;
  wire::MessageType last_reply_{};
};

// The offer in the WELCOME that a node gives to `hello` over TCP; empty when it makes none.
std::string offer_of(std::uint16_t port, const wire::Hello& hello);

}  // namespace dpwa::test
