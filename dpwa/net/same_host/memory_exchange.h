#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/same_host/frame_socket.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::same_host {

// The number of a file without data whose generation is 0 until its owner takes back all that it
// has lent over this connection: a reader looks at it after it has read.
inline constexpr std::uint32_t revocation_number = 0xffffffff;

// A connection between two processes of one host over which each gives the other memory files to
// map, and nothing else: SHARE with a descriptor, answered by SHARED. A mapping lasts as
// long as this object, also after the connection has ended. One thread.
class MemoryExchange : public std::enable_shared_from_this<MemoryExchange> {
 public:
  static constexpr std::size_t most_files = 4096;

  explicit MemoryExchange(FrameSocket socket) : socket_(std::move(socket)) {}

  // Takes files of the other end until the connection ends. The result: why.
  boost::asio::awaitable<std::string> run();
  // The next frame of these types, before run().
  boost::asio::awaitable<net::IoResult<net::Frame>> read(net::TypeSet expected) {
    return socket_.read_frame(expected, &received_);
  }
  void send(std::vector<std::byte> frame) { send({std::move(frame), -1}); }
  void close() { socket_.close(); }

  // Gives the other end a file of this process, which outlives the connection; once.
  void share(std::uint32_t number, const MemoryFile& file, std::size_t bytes);
  bool is_sharing(std::uint32_t number) const { return sharing_.contains(number); }
  // The other end has mapped it.
  bool is_shared(std::uint32_t number) const { return shared_.contains(number); }
  // A file of the other end; null: it has shared none of that number.
  std::shared_ptr<MemoryFile> memory(std::uint32_t number) const;
  // Whether what the other end has lent is still lent.
  bool intact() const {
    const auto revocation = memory(revocation_number);
    return revocation && revocation->generation() == 0;
  }
  // The bytes of a file of the other end; empty: they are not all in it.
  std::span<const std::byte> bytes(std::uint32_t number, std::uint64_t offset,
                                   std::uint64_t count) const;

 private:
  struct Outgoing {
    std::vector<std::byte> frame;
    int descriptor;
  };
  struct Mapped {
    std::shared_ptr<MemoryFile> file;
    std::uint64_t bytes = 0;
  };
  void send(Outgoing next);
  void write_what_waits();
  boost::asio::awaitable<void> write();
  std::string take(const net::Frame& frame);

  FrameSocket socket_;
  FileDescriptor received_;  // with the last bytes
  std::deque<Outgoing> outgoing_;
  bool writing_ = false;
  std::set<std::uint32_t> sharing_;
  std::set<std::uint32_t> shared_;
  std::map<std::uint32_t, Mapped> mapped_;
};

}  // namespace dpwa::same_host
