#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "dpwa/net/stream.h"

namespace dpwa::net {

// The bytes of a stream, for many short frames with one system call. What is read ahead is bounded,
// and the thread turns to others before it reads more. The rest of a long payload goes straight to
// its target. After Stream::close() what was read ahead is lost, too. Nothing else reads from the
// stream, which outlives it. One thread.
class ReadAhead final : public ByteSource {
 public:
  explicit ReadAhead(Stream& stream) : stream_(stream) {}

  boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                          std::size_t at_least) override;
  std::size_t read_at_once(std::span<std::byte> target) override;

 private:
  static constexpr std::size_t most_bytes = std::size_t{32} << 10;
  std::size_t take(std::span<std::byte> target);

  Stream& stream_;
  std::vector<std::byte> buffer_;  // empty until the first read
  std::size_t begin_ = 0;          // what has come and has not been taken
  std::size_t end_ = 0;
};

}  // namespace dpwa::net
