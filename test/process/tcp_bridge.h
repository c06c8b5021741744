#pragma once

#include <cstdint>
#include <memory>
#include <thread>

namespace dpwa::test {

// Forwards TCP connections from one loopback port to another on a thread of its own, until it is
// cut: then it ends those there are and new ones at once, and mend() lets them through again. It
// keeps the port meanwhile: nobody else can take it.
class TcpBridge {
 public:
  TcpBridge(std::uint16_t from, std::uint16_t to);
  ~TcpBridge();
  TcpBridge(const TcpBridge&) = delete;
  TcpBridge& operator=(const TcpBridge&) = delete;

  void cut();
  void mend();

 private:
  class Forwarding;
  std::unique_ptr<Forwarding> forwarding_;
  std::thread thread_;
};

}  // namespace dpwa::test
