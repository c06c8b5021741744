#include "test/support/memory_reader.h"

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

MemoryReader::MemoryReader(std::uint16_t port, const wire::Hello& hello) {
  const auto offer = same_host::parse_offer(offer_of(port, hello));
  if (!offer) throw std::runtime_error("the node offers no memory");
  socket_.emplace(connect_unix(offer->socket));
  say_hello(*socket_, hello);
}

std::optional<wire::Mapped> MemoryReader::pull(std::chrono::milliseconds deadline,
                                               std::size_t data_bytes) {
  wire::Pull pull;
  pull.deadline_ms = static_cast<std::uint32_t>(deadline.count());
  socket_->send(wire::encode(pull, 2));
  FileDescriptor descriptor;
  const auto bytes = receive_descriptor(*socket_, descriptor);  // small: it comes in one piece
  if (bytes.size() < wire::header_bytes) throw std::runtime_error("the node does not answer");
  last_reply_ = wire::decode_header(std::span(bytes).first<wire::header_bytes>(), 0)->type;
  if (last_reply_ != wire::MessageType::mapped) return std::nullopt;
  const auto mapped = wire::decode_mapped(std::span(bytes).subspan(wire::header_bytes));
  if (!mapped || mapped->with_descriptor != descriptor.valid())
    throw std::runtime_error("the node sends no sound MAPPED");
  mappings_.resize(std::max<std::size_t>(mappings_.size(), mapped->buffer + 1));
  if (descriptor.valid()) {
    auto opened = MemoryFile::open(std::move(descriptor), data_bytes, MemoryFile::Access::read);
    if (!opened) throw std::runtime_error("the node " + opened.error());
    mappings_[mapped->buffer] = *opened;
  }
  mapping_ = mappings_[mapped->buffer];
  return *mapped;
}

bool MemoryReader::release(bool landed) {
  return socket_->send(wire::encode(wire::Release{landed}, 3));
}

}  // namespace dpwa::test
