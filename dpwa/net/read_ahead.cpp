#include "dpwa/net/read_ahead.h"

#include <algorithm>
#include <cstring>

namespace dpwa::net {

namespace asio = boost::asio;

std::size_t ReadAhead::take(std::span<std::byte> target) {
  if (!stream_.is_open()) begin_ = end_;
  const std::size_t count = std::min(target.size(), end_ - begin_);
  if (count > 0) std::memcpy(target.data(), buffer_.data() + begin_, count);
  begin_ += count;
  return count;
}

std::size_t ReadAhead::read_at_once(std::span<std::byte> target) {
  const std::size_t taken = take(target);
  const auto rest = target.subspan(taken);
  return taken + (rest.size() < most_bytes ? 0 : stream_.read_at_once(rest));
}

asio::awaitable<IoResult<std::size_t>> ReadAhead::read_some(std::span<std::byte> target,
                                                            std::size_t at_least) {
  const std::size_t taken = take(target);
  if (taken >= at_least) co_return taken;
  const auto rest = target.subspan(taken);
  const std::size_t missing = at_least - taken;
  if (rest.size() >= most_bytes) {
    const auto got = co_await stream_.read_some(rest, missing);
    if (!got) co_return got.error();
    co_return taken + *got;
  }
  buffer_.resize(most_bytes);
  begin_ = end_ = 0;
  const auto got = co_await stream_.read_some(buffer_, missing);
  if (!got) co_return got.error();
  end_ = *got;
  co_return taken + take(rest);
}

}  // namespace dpwa::net
