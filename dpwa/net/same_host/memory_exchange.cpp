#include "dpwa/net/same_host/memory_exchange.h"

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "dpwa/net/coroutine.h"
#include "dpwa/wire/messages.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using wire::MessageType;

void MemoryExchange::share(std::uint32_t number, const MemoryFile& file, std::size_t bytes) {
  if (!sharing_.insert(number).second) return;
  send({wire::encode(wire::Share{number, bytes}, 0), file.descriptor()});
}

std::shared_ptr<MemoryFile> MemoryExchange::memory(std::uint32_t number) const {
  const auto found = mapped_.find(number);
  return found == mapped_.end() ? nullptr : found->second.file;
}

std::span<const std::byte> MemoryExchange::bytes(std::uint32_t number, std::uint64_t offset,
                                                 std::uint64_t count) const {
  const auto found = mapped_.find(number);
  if (found == mapped_.end()) return {};
  const auto& [file, size] = found->second;
  if (offset > size || count > size - offset) return {};
  return file->bytes({offset, count});
}

void MemoryExchange::send(Outgoing next) {
  outgoing_.push_back(std::move(next));
  write_what_waits();
}

void MemoryExchange::write_what_waits() {
  if (writing_ || outgoing_.empty() || !socket_.is_open()) return;
  writing_ = true;
  auto self = shared_from_this();
  asio::co_spawn(socket_.socket().get_executor(), write(), [self](std::exception_ptr failure) {
    self->writing_ = false;
    net::rethrow(std::move(failure));
    self->write_what_waits();  // what was sent since write() saw that nothing is left
  });
}

asio::awaitable<void> MemoryExchange::write() {
  while (!outgoing_.empty() && socket_.is_open()) {
    const Outgoing next = std::move(outgoing_.front());
    outgoing_.pop_front();
    const auto broken = co_await socket_.write(next.frame, next.descriptor);
    if (broken) socket_.close();
  }
}

asio::awaitable<std::string> MemoryExchange::run() {
  constexpr auto expected = net::types(MessageType::share, MessageType::shared);
  while (true) {
    const auto frame = co_await read(expected);
    std::string why = frame ? take(*frame) : frame.error().detail;
    if (why.empty()) continue;
    socket_.close();
    co_return why;
  }
}

// The fault of the frame; empty: none.
std::string MemoryExchange::take(const net::Frame& frame) {
  if (frame.header.type == MessageType::shared) {
    const auto shared = wire::decode_shared(frame.body);
    if (!shared) return shared.error().detail;
    if (!sharing_.contains(shared->number)) return "SHARED of memory that was not shared";
    shared_.insert(shared->number);
    return {};
  }
  const auto share = wire::decode_share(frame.body);
  if (!share) return share.error().detail;
  if (mapped_.contains(share->number) || mapped_.size() >= most_files)
    return "SHARE of too many memory files, or one twice";
  auto file = MemoryFile::open(std::move(received_), share->bytes, MemoryFile::Access::read);
  if (!file) return file.error();
  mapped_[share->number] = {*std::move(file), share->bytes};
  send({wire::encode(wire::Shared{share->number}, 0), -1});
  return {};
}

}  // namespace dpwa::same_host
