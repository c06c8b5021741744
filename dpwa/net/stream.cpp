#include "dpwa/net/stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

IoFailure broken(const error_code& error) {
  return {false, false, error == asio::error::eof ? "the connection was closed" : error.message()};
}

constexpr auto all_of_it = [](const error_code& error, std::size_t) {
  return error ? std::size_t{0} : Stream::max_transfer_bytes;
};

}  // namespace

asio::awaitable<error_code> Stream::write_all(std::span<const std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto [error, written] = co_await asio::async_write(socket_, buffer, all_of_it, as_result);
  co_return error;
}

asio::awaitable<error_code> Stream::write_all(std::span<const asio::const_buffer> buffers) {
  const auto [error, written] = co_await asio::async_write(socket_, buffers, all_of_it, as_result);
  co_return error;
}

asio::awaitable<IoResult<std::size_t>> Stream::read_some(std::span<std::byte> target,
                                                         std::size_t at_least) {
  const auto buffer = asio::buffer(target.data(), target.size());
  const auto condition = [at_least](const error_code& error, std::size_t done) {
    return error || done >= at_least ? std::size_t{0} : max_transfer_bytes;
  };
  const auto [error, count] = co_await asio::async_read(socket_, buffer, condition, as_result);
  if (error) {
    IoFailure failure = broken(error);
    co_return failure;
  }
  co_return count;
}

void Stream::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace dpwa::net
