#include "test/support/memory_reader.h"

#include <span>
#include <stdexcept>
#include <utility>

#include "dpwa/net/same_host/offer.h"
#include "test/support/raw_socket.h"

namespace dpwa::test {
namespace {

wire::Welcome say_hello(RawSocket& socket, const wire::Hello& hello) {
  socket.send(wire::encode(hello, 1));
  const auto frame = socket.read_frame();
  if (!frame || frame->header.type != wire::MessageType::welcome)
    throw std::runtime_error("the node does not welcome the reader");
  return *wire::decode_welcome(frame->body);
}

}  // namespace

std::string offer_of(std::uint16_t port, const wire::Hello& hello) {
  RawSocket tcp(port);
  return say_hello(tcp, hello).same_host;
}

MemoryReader::MemoryReader(std::uint16_t port, const wire::Hello& hello) : tcp_(port) {
  const auto offer = same_host::parse_offer(say_hello(tcp_, hello).same_host);
  if (!offer) throw std::runtime_error("the node offers no memory");
  unix_.emplace(connect_unix(offer->socket));
  unix_->send(wire::encode(hello, 1));
  while (true) {
    FileDescriptor descriptor;
    // One frame, for a descriptor ends what is read at once; small: it comes in one piece.
    const auto bytes = receive_descriptor(*unix_, descriptor);
    if (bytes.size() < wire::header_bytes) throw std::runtime_error("the node does not answer");
    const auto header = wire::decode_header(std::span(bytes).first<wire::header_bytes>(), 0);
    if (header && header->type == wire::MessageType::welcome) return;
    const auto share = wire::decode_share(std::span(bytes).subspan(wire::header_bytes));
    if (!share || share->number != buffers_.size())
      throw std::runtime_error("the node shares no memory");
    auto opened = MemoryFile::open(std::move(descriptor), share->bytes, MemoryFile::Access::read);
    if (!opened) throw std::runtime_error("the node " + opened.error());
    buffers_.push_back(*opened);
  }
}

std::optional<wire::Mapped> MemoryReader::pull(std::chrono::milliseconds deadline) {
  wire::Pull pull;
  pull.deadline_ms = static_cast<std::uint32_t>(deadline.count());
  pull.may_map = true;
  tcp_.send(wire::encode(pull, 2));
  const auto reply = tcp_.read_frame();
  if (!reply) throw std::runtime_error("the node does not answer");
  last_reply_ = reply->header.type;
  if (last_reply_ != wire::MessageType::mapped) return std::nullopt;
  const auto mapped = wire::decode_mapped(reply->body);
  if (!mapped || mapped->place.memory >= buffers_.size())
    throw std::runtime_error("the node sends no sound MAPPED");
  mapping_ = buffers_[mapped->place.memory];
  return *mapped;
}

bool MemoryReader::release(bool landed) {
  return tcp_.send(wire::encode(wire::Release{landed}, 2));
}

}  // namespace dpwa::test
