#include "dpwa/net/same_host/memory_exchange.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/local_process.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;
using wire::MessageType;

boost::system::result<std::shared_ptr<MemoryExchange>, std::string> MemoryExchange::call(
    asio::io_context& io, const Offer& offer, const LocalProcess& local) {
  auto connected = ipc::connect_to(offer.socket);
  if (!connected) return connected.error();
  Socket socket(io);
  error_code error;
  socket.assign(stream_protocol(), connected->get(), error);
  if (error) return error.message();
  connected->release();
  auto exchange = std::make_shared<MemoryExchange>(std::move(socket));
  const wire::Hello hello{wire::Role::node,  wire::capability(Codec::raw),
                          local.cluster,     local.name,
                          local.incarnation, local.manifest.fingerprint()};
  exchange->send(wire::encode(hello, 1));
  return exchange;
}

void MemoryExchange::close() {
  error_code ignored;
  socket_.close(ignored);
}

void MemoryExchange::share(std::uint32_t number, const MemoryFile& file) {
  if (!sharing_.try_emplace(number, false).second) return;
  send(wire::encode(wire::Share{number, file.size()}, 0), file.descriptor());
}

std::shared_ptr<MemoryFile> MemoryExchange::memory(std::uint32_t number) const {
  const auto found = mapped_.find(number);
  return found == mapped_.end() ? nullptr : found->second;
}

std::optional<Loan> MemoryExchange::borrow(const MemoryPlace& place) const {
  auto file = memory(place.memory);
  if (!file || place.offset > file->size() || place.bytes > file->size() - place.offset)
    return std::nullopt;
  const auto bytes = file->bytes({place.offset, place.bytes});
  if (auto revocation = memory(revocation_number))
    return Loan{bytes, std::move(file), std::move(revocation), 0};
  return Loan{bytes, file, file, place.mark};
}

void MemoryExchange::send(std::vector<std::byte> frame, int descriptor) {
  asio::co_spawn(socket_.get_executor(), write(std::move(frame), descriptor),
                 [self = shared_from_this()](std::exception_ptr failure) {
                   net::rethrow(std::move(failure));
                 });
}

asio::awaitable<void> MemoryExchange::write(std::vector<std::byte> frame, int descriptor) {
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  if (!is_open()) co_return;
  ipc::Write write(frame, descriptor);
  error_code error = write.step(socket_.native_handle());
  while (error == asio::error::would_block) {
    const auto [failed] = co_await socket_.async_wait(Socket::wait_write, net::as_result);
    error = failed ? failed : write.step(socket_.native_handle());
  }
  if (error) close();
}

asio::awaitable<void> MemoryExchange::refuse(wire::Reject reject, std::uint32_t request_id) {
  auto answer = wire::encode(reject, request_id);
  co_await write(std::move(answer), -1);
  close();
}

asio::awaitable<net::IoResult<std::size_t>> MemoryExchange::read_some(std::span<std::byte> target,
                                                                      std::size_t at_least) {
  ipc::Read read(target, at_least, &received_);
  error_code error = read.step(socket_.native_handle());
  while (error == asio::error::would_block) {
    const auto [failed] = co_await socket_.async_wait(Socket::wait_read, net::as_result);
    error = failed ? failed : read.step(socket_.native_handle());
  }
  if (!error) co_return read.bytes();
  net::Failure failure(error);
  co_return failure;
}

asio::awaitable<net::IoResult<net::Frame>> MemoryExchange::read(net::TypeSet expected) {
  const net::Expected frames(expected, longest_frame_bytes - wire::header_bytes);
  auto frame = co_await net::receive(*this, incoming_, frames);
  if (!frame) close();
  // What came with another frame. While more has been read ahead, it may belong to that.
  const bool kept = frame && (frame->header.type == MessageType::share || incoming_.holds_bytes());
  if (!kept) received_ = {};
  co_return frame;
}

asio::awaitable<net::IoResult<net::Frame>> MemoryExchange::take_files(net::TypeSet until) {
  net::TypeSet expected = net::types(MessageType::share, MessageType::shared);
  expected |= until;
  while (true) {
    auto frame = co_await read(expected);
    if (!frame || until.has(frame->header.type)) co_return frame;
    std::string why = take(*frame);
    if (why.empty()) continue;
    close();
    net::Failure failure(net::Failure::Kind::protocol, std::move(why));
    co_return failure;
  }
}

asio::awaitable<net::IoResult<wire::Welcome>> MemoryExchange::welcomed() {
  constexpr auto answers = net::types(MessageType::welcome, MessageType::reject);
  const auto answer = co_await take_files(answers);
  if (!answer) co_return answer.error();
  net::Failure failure;
  if (answer->header.type == MessageType::welcome) {
    auto welcome = wire::decode_welcome(answer->body);
    if (welcome) co_return std::move(*welcome);
    failure = welcome.error();
  } else {
    const auto reject = wire::decode_reject(answer->body);
    failure = reject ? net::Failure(*reject) : net::Failure(reject.error());
  }
  close();
  co_return failure;
}

asio::awaitable<net::Failure> MemoryExchange::run() {
  const net::TypeSet none;
  const auto end = co_await take_files(none);
  co_return end.error();
}

// The fault of the frame; empty: none.
std::string MemoryExchange::take(const net::Frame& frame) {
  if (frame.header.type == MessageType::shared) {
    const auto shared = wire::decode_shared(frame.body);
    if (!shared) return shared.error().detail;
    const auto own = sharing_.find(shared->number);
    if (own == sharing_.end()) return "SHARED of memory that was not shared";
    own->second = true;
    return {};
  }
  const auto share = wire::decode_share(frame.body);
  if (!share) return share.error().detail;
  if (mapped_.contains(share->number) || mapped_.size() >= most_files)
    return "SHARE of too many memory files, or one twice";
  auto file = MemoryFile::open(std::move(received_), share->bytes, MemoryFile::Access::read);
  if (!file) return file.error();
  mapped_[share->number] = *std::move(file);
  send(wire::encode(wire::Shared{share->number}, 0));
  return {};
}

}  // namespace dpwa::same_host
