#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/time.h"
#include "dpwa/kvserver/shared_memory_server.h"
#include "dpwa/kvserver/store_handler.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/net/local_process.h"

namespace dpwa::test {

// Key 0 has two numbers, and key 1 so many bytes that its values are read where they are.
inline constexpr std::size_t large_bytes = std::size_t{64} << 10;

// The server s1 with everything that its workers of this host reach, except TCP. Its workers are
// w1, which is the caller, and w2, which pushes ones. Aborts when memory that is lent to the caller
// changes, and when a value is not finite.
class MemoryHost {
 public:
  explicit MemoryHost(bool at_each_push);
  ~MemoryHost();
  MemoryHost(const MemoryHost&) = delete;
  MemoryHost& operator=(const MemoryHost&) = delete;

  static kvstore::SliceId slice(unsigned key) {
    return {kvstore::Key(static_cast<int>(key % 2)), 0};
  }
  // The push of this key with one of some weights, sums and means, with or without an optimizer.
  static kvstore::Push with_terms(kvstore::Push push, unsigned key, unsigned terms);

  FileDescriptor connect();  // to the door
  // Messages of w1.
  void ask(kvstore::Message message);
  void ask_anything(unsigned type, std::span<const std::byte> content);
  void read(std::uint64_t number);
  // It calls again, as this process. Its former connection ends.
  void reconnect(unsigned incarnation);
  void other_push(unsigned key);
  // Until there is nothing to do. Checks what is lent.
  void run();

 private:
  class Caller;
  struct Lent {
    std::span<const std::byte> values;
    std::uint32_t checksum = 0;
  };
  void request(wire::MessageType type, std::vector<std::byte> body);
  boost::asio::awaitable<void> answer(net::Frame request, Caller& caller);
  void deliver();
  void disconnect(Caller& caller);
  void written(std::span<const std::byte> head);

  boost::asio::io_context io_{1};
  LocalProcess local_;
  kvserver::SharedMemoryServer shared_memory_;
  TimePoint now_{};
  kvstore::ServerEngine engine_;
  kvserver::StoreHandler handler_;
  std::vector<std::unique_ptr<Caller>> callers_;  // the last one calls
  std::map<std::uint64_t, Lent> lent_;            // by number of the answer
  std::uint64_t steps_[2] = {0, 0};               // of w2
};

}  // namespace dpwa::test
