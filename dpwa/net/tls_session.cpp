#include "dpwa/net/tls_session.h"

#include <openssl/ssl3.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/net/coroutine.h"

namespace dpwa::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Plain bytes that are sealed before they are sent. They and their records stay in the second-level
// cache together with the socket's own copy.
constexpr std::size_t batch_bytes = 16 * record_bytes;

// Memory for batches that no write uses at the moment: with many connections few write at once. A
// fresh block for each write would cost more in page faults than the sealing.
class SpareBatches {
 public:
  std::vector<std::byte> take() {
    std::vector<std::byte> batch;
    if (spare_.empty()) {
      batch.reserve(batch_bytes + batch_bytes / 8);
    } else {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    return batch;
  }
  void give_back(std::vector<std::byte> batch) {
    constexpr std::size_t most = 4;
    batch.clear();
    if (spare_.size() < most) spare_.push_back(std::move(batch));
  }

 private:
  std::vector<std::vector<std::byte>> spare_;
};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wexit-time-destructors"  // it ends with its thread
#endif
SpareBatches& spare_batches() {
  thread_local SpareBatches spare;
  return spare;
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace

TlsSession::TlsSession(Socket& socket, std::shared_ptr<const TlsContext> context, bool calls,
                       bool reads_bulk)
    : socket_(socket),
      records_(std::make_unique<TlsRecords>([&socket] { return socket.native_handle(); },
                                            std::move(context), calls, reads_bulk)),
      sealed_(records_->sealed()),
      writing_(socket.get_executor()) {}

TlsSession::~TlsSession() = default;

asio::awaitable<error_code> TlsSession::flush() {
  error_code failed;
  while (!sealed_.empty() && !failed) {
    in_flight_.swap(sealed_);
    const auto condition = [](const error_code& error, std::size_t) {
      return error ? std::size_t{0} : std::size_t{4} << 20;
    };
    const auto buffer = asio::buffer(in_flight_.data(), in_flight_.size());
    const auto [error, written] = co_await asio::async_write(socket_, buffer, condition, as_result);
    in_flight_.clear();
    if (sealed_.empty()) sealed_.swap(in_flight_);  // the same memory again
    failed = error;
  }
  co_return failed;
}

asio::awaitable<error_code> TlsSession::flush_for_reader() {
  error_code failed;
  if (writing_.taken()) co_return failed;  // the writer takes it along
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  failed = co_await flush();
  co_return failed;
}

asio::awaitable<error_code> TlsSession::readable() {
  records_in_a_row_ = 0;
  const auto [error] = co_await socket_.async_wait(Socket::wait_read, as_result);
  co_return error;
}

asio::awaitable<error_code> TlsSession::turn_of_others() {
  records_in_a_row_ = 0;
  co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  error_code error;
  if (!socket_.is_open()) error = asio::error::operation_aborted;
  co_return error;
}

asio::awaitable<std::optional<Failure>> TlsSession::shake_hands() {
  std::optional<Failure> outcome;
  for (bool done = false; !done && !outcome;) {
    const auto result = records_->shake_hands();
    auto error = co_await flush();  // of what tells the other end, too
    done = result.has_value() && *result;
    if (!result) {
      outcome = result.error();
    } else {
      if (!error && !done) error = co_await readable();
      if (error) outcome.emplace(error);
    }
  }
  co_return outcome;
}

asio::awaitable<error_code> TlsSession::write_all(std::span<const asio::const_buffer> buffers) {
  // Buffers before the parameters travel in the same record as the first parameters.
  std::array<std::byte, record_bytes> joined;
  std::size_t joined_bytes = 0;
  error_code error;
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  const std::vector<std::byte> waiting = std::exchange(sealed_, spare_batches().take());
  sealed_.insert(sealed_.end(), waiting.begin(), waiting.end());
  for (std::size_t i = 0; i < buffers.size() && !error; ++i) {
    std::span rest(static_cast<const std::byte*>(buffers[i].data()), buffers[i].size());
    const bool last = i + 1 == buffers.size();
    if (!last || joined_bytes > 0) {
      const std::size_t taken = std::min(rest.size(), joined.size() - joined_bytes);
      std::memcpy(joined.data() + joined_bytes, rest.data(), taken);
      joined_bytes += taken;
      rest = rest.subspan(taken);
      if (joined_bytes == joined.size() || last) {
        const bool done = records_->seal(std::span(joined).first(joined_bytes));
        if (!done) error = asio::error::broken_pipe;
        joined_bytes = 0;
      }
    }
    while (!rest.empty() && !error) {
      const auto part = rest.first(std::min(rest.size(), batch_bytes));
      const bool done = records_->seal(part);
      if (!done) {
        error = asio::error::broken_pipe;
      } else {
        rest = rest.subspan(part.size());
        if (sealed_.size() >= batch_bytes) error = co_await flush();
      }
    }
  }
  if (!error) error = co_await flush();
  spare_batches().give_back(std::exchange(sealed_, {}));
  co_return error;
}

asio::awaitable<IoResult<std::size_t>> TlsSession::read_some(std::span<std::byte> target,
                                                             std::size_t at_least) {
  std::size_t have = 0;
  if (ended_by_) {
    Failure failed = *ended_by_;
    co_return failed;
  }
  while (have < target.size()) {
    if (records_in_a_row_ == max_records_in_a_row) {
      const auto error = co_await turn_of_others();
      if (error) {
        Failure failed(error);
        co_return failed;
      }
    }
    ++records_in_a_row_;
    const auto opened = records_->open(target.subspan(have));
    if (opened && *opened > 0) {
      have += *opened;
      continue;
    }
    if (!opened) {
      Failure failed = opened.error();
      co_await flush_for_reader();  // the alert that says why
      ended_by_ = failed;
      if (have > 0 && have >= at_least) break;  // all that was asked for came before the end
      co_return failed;
    }
    if (have >= at_least) break;
    auto error = co_await flush_for_reader();  // the answer to a key update
    if (!error) error = co_await readable();
    if (error) {
      Failure failed(error);
      co_return failed;
    }
  }
  co_return have;
}

}  // namespace dpwa::net
