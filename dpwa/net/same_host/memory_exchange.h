#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/loan.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
struct LocalProcess;
}

namespace dpwa::same_host {

// The number of a file without data whose generation is 0 until its owner takes back all that it
// has lent over this connection: a reader looks at it after it has read.
inline constexpr std::uint32_t revocation_number = 0xffffffff;

// A connection between two processes of one host over which each gives the other memory files to
// map, and nothing else: SHARE with a descriptor, answered by SHARED. A mapping lasts as
// long as this object, or until forget(), also after the connection has ended. Failures close the
// connection; nothing throws. One thread.
class MemoryExchange final : public std::enable_shared_from_this<MemoryExchange>,
                             private net::ByteSource {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  static constexpr std::size_t most_files = 4096;

  explicit MemoryExchange(Socket socket) : socket_(std::move(socket)) {}
  // Connects to the process that made this offer, and sends its HELLO; or the reason why not. Does
  // not wait.
  static boost::system::result<std::shared_ptr<MemoryExchange>, std::string> call(
      boost::asio::io_context& io, const Offer& offer, const LocalProcess& local);

  // The called side, before run(): the next frame of these types, and a last one in answer.
  boost::asio::awaitable<net::IoResult<net::Frame>> read(net::TypeSet expected);
  boost::asio::awaitable<void> refuse(wire::Reject reject, std::uint32_t request_id);
  // The caller: takes files of the other end until that has answered its HELLO; before run().
  boost::asio::awaitable<net::IoResult<wire::Welcome>> welcomed();
  // Takes files of the other end until the connection ends. The result: why.
  boost::asio::awaitable<net::Failure> run();

  // Frames leave in the order of these calls. `descriptor` travels with the frame and stays open
  // here; -1: none.
  void send(std::vector<std::byte> frame, int descriptor = -1);
  // Gives the other end a file of this process, which outlives the connection; once.
  void share(std::uint32_t number, const MemoryFile& file);
  // The other end has mapped it.
  bool is_shared(std::uint32_t number) const {
    const auto found = sharing_.find(number);
    return found != sharing_.end() && found->second;
  }

  // A file of the other end; null: it has shared none of that number.
  std::shared_ptr<MemoryFile> memory(std::uint32_t number) const;
  // What a message of the other end lends; none: it has not shared all of that. An end that has
  // shared a revocation takes its memory back with that one, others with the generation of a file.
  std::optional<Loan> borrow(const MemoryPlace& place) const;
  void forget() { mapped_.clear(); }  // the files of the other end

  bool is_open() const { return socket_.is_open(); }
  void close();  // what is under way fails, and what waits to be sent is lost

 private:
  static constexpr std::size_t longest_frame_bytes = 4096;  // header included

  boost::asio::awaitable<net::IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                               std::size_t at_least) override;
  // The next frame of the types `until`. Takes files that come before it.
  boost::asio::awaitable<net::IoResult<net::Frame>> take_files(net::TypeSet until);
  std::string take(const net::Frame& frame);
  boost::asio::awaitable<void> write(std::vector<std::byte> frame, int descriptor);

  Socket socket_;
  FileDescriptor received_;  // with the last bytes
  net::Incoming incoming_{longest_frame_bytes};
  net::Turns writing_{socket_.get_executor()};
  std::map<std::uint32_t, bool> sharing_;  // whether the other end has mapped it
  std::map<std::uint32_t, std::shared_ptr<MemoryFile>> mapped_;
};

}  // namespace dpwa::same_host
