#include "dpwa/net/same_host/mapped_peer.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/same_host/frame_socket.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using wire::MessageType;

namespace {

// The bytes read at once: long enough to cost nothing, short enough to keep deadlines in between.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

PullResult taken_back(const Progress& progress) {
  PullResult result = failed(PeerFailure::timed_out, "took its memory back while it was read");
  result.progress = progress;
  return result;
}

}  // namespace

MappedPeer::MappedPeer(asio::io_context& io, LocalProcess& local, std::string peer,
                       std::span<std::byte> payload)
    : io_(io), local_(local), peer_(std::move(peer)), payload_(payload) {}

bool MappedPeer::is_open() const {
  return socket_ != nullptr && socket_->is_open();
}

void MappedPeer::close() {
  if (socket_) socket_->close();
  lent_.reset();
  buffers_.clear();
}

asio::awaitable<std::string> MappedPeer::connect(Offer offer, std::uint64_t incarnation) {
  thread_.check();
  close();
  auto connected = ipc::connect_to(offer.socket);
  if (!connected) co_return connected.error();
  stream_protocol::socket socket(io_);
  boost::system::error_code error;
  socket.assign(stream_protocol(), connected->get(), error);
  if (error) co_return error.message();
  connected->release();
  socket_ = std::make_shared<FrameSocket>(std::move(socket));
  watching_ = false;
  busy_ = true;
  std::string why = co_await shake_hands(incarnation);
  busy_ = false;
  if (!why.empty()) close();
  co_return why;
}

asio::awaitable<std::string> MappedPeer::shake_hands(std::uint64_t incarnation) {
  const wire::Hello hello{wire::Role::node,   wire::capability(Codec::raw),
                          local_.cluster,     local_.name,
                          local_.incarnation, local_.manifest.fingerprint()};
  const auto encoded = wire::encode(hello, next_request_id_++);
  const auto written = co_await socket_->write(encoded);
  if (written) co_return written.message();
  constexpr auto replies = net::types(MessageType::welcome, MessageType::reject);
  const auto frame = co_await socket_->read_frame(replies);
  if (!frame) co_return frame.error().detail;
  if (frame->header.type == MessageType::reject) {
    const PullResult refused = declined(frame->header.type, frame->body);
    co_return refused.detail;
  }
  const auto welcome = wire::decode_welcome(frame->body);
  if (!welcome) co_return welcome.error().detail;
  if (welcome->node != peer_ || welcome->incarnation != incarnation)
    co_return std::string("another node answers there");
  incarnation_ = incarnation;
  co_return std::string();
}

PullResult MappedPeer::finish(PullResult result, bool whole) {
  busy_ = false;
  result.incarnation = incarnation_;
  if (!whole) close();
  if (is_open()) watch();
  return result;
}

asio::awaitable<PullResult> MappedPeer::ask(PullRequest request) {
  thread_.check();
  busy_ = true;
  PullResult result = co_await exchange(request);
  if (!result.failure) co_return result;
  const bool whole = declined_in_order(*result.failure);
  co_return finish(std::move(result), whole);
}

asio::awaitable<PullResult> MappedPeer::land(Landing& landing) {
  thread_.check();
  if (!lent_) co_return failed(PeerFailure::unreachable, "the connection was closed");
  Lent lent = std::move(*lent_);
  lent_.reset();
  PullResult result = co_await read(std::move(lent), landing);
  if (!result.failure) co_await release(true);
  const bool whole = !result.failure;
  co_return finish(std::move(result), whole);
}

asio::awaitable<PullResult> MappedPeer::decline(PeerFailure why) {
  thread_.check();
  PullResult result = not_wanted(why, lent_ ? lent_->reply.progress : Progress());
  lent_.reset();
  co_await release(false);
  co_return finish(std::move(result), true);
}

asio::awaitable<PullResult> MappedPeer::exchange(const PullRequest& request) {
  wire::Pull message;
  message.codec = request.codec;
  message.chunk_bytes = static_cast<std::uint32_t>(payload_.size());
  message.full = request.full;
  message.for_final_average = request.for_final_average;
  if (request.known_incarnation == incarnation_) message.known_version = request.known_version;
  message.offset = request.range.offset;
  message.length = request.range.length;
  message.deadline_ms = request.deadline_ms;
  message.taken = request.taken;
  const std::uint32_t request_id = next_request_id_++;
  const auto encoded = wire::encode(message, request_id);
  const auto written = co_await socket_->write(encoded);
  if (written) co_return failed(PeerFailure::unreachable, written.message());
  constexpr auto replies =
      net::types(MessageType::mapped, MessageType::not_modified, MessageType::not_fresh,
                 MessageType::not_ready, MessageType::busy, MessageType::error);
  FileDescriptor descriptor;
  const auto frame = co_await socket_->read_frame(replies, &descriptor);
  if (!frame) co_return failed(frame.error());
  if (frame->header.request_id != request_id)
    co_return failed(PeerFailure::protocol, "answered another request");
  if (frame->header.type != MessageType::mapped)
    co_return declined(frame->header.type, frame->body);
  const auto reply = wire::decode_mapped(frame->body);
  if (!reply) co_return failed(reply.error());
  co_return take_over(request, *reply, std::move(descriptor));
}

PullResult MappedPeer::take_over(const PullRequest& request, const wire::Mapped& reply,
                                 FileDescriptor descriptor) {
  const bool fits = ByteRange{reply.offset, reply.length} == request.range &&
                    request.range.end() <= local_.manifest.total_bytes();
  if (!fits) return failed(PeerFailure::protocol, "handed over a range not asked for");
  std::string why;
  auto memory = memory_of(reply, std::move(descriptor), why);
  if (memory == nullptr) return failed(PeerFailure::protocol, why);
  lent_ = Lent{std::move(memory), reply, request.codec};
  PullResult result;
  result.progress = reply.progress;
  result.incarnation = incarnation_;
  return result;
}

std::shared_ptr<MemoryFile> MappedPeer::memory_of(const wire::Mapped& reply,
                                                  FileDescriptor descriptor, std::string& why) {
  if (buffers_.size() <= reply.buffer) buffers_.resize(reply.buffer + 1);
  std::shared_ptr<MemoryFile>& memory = buffers_[reply.buffer];
  if (reply.with_descriptor) {
    auto opened = MemoryFile::open(std::move(descriptor), local_.manifest.total_bytes(),
                                   MemoryFile::Access::read);
    if (!opened) why = opened.error();
    memory = opened ? std::move(*opened) : nullptr;
  } else if (memory == nullptr) {
    why = "referred to memory that it has not sent";
  }
  return memory;
}

std::uint64_t MappedPeer::land_piece(const MemoryFile& memory, ByteRange piece, Codec codec,
                                     Landing& landing) {
  if (codec == Codec::raw) {
    landing.consume(piece.offset, memory.bytes(piece));
    return piece.length;
  }
  const Manifest& manifest = local_.manifest;
  const auto payload = payload_.first(payload_bytes(manifest, codec, piece));
  encode_chunk(manifest, codec, memory.bytes({0, manifest.total_bytes()}), piece, payload);
  landing.consume(codec, piece, payload);
  return payload.size();
}

// Lets the thread do its other work between two pieces; a deadline may close the connection there.
// With a codec the pieces are the chunks of a reply over TCP, for its units depend on them.
asio::awaitable<PullResult> MappedPeer::read(Lent lent, Landing& landing) {
  const auto& [memory, reply, codec] = lent;
  PullResult result;
  result.progress = reply.progress;
  const ByteRange range{reply.offset, reply.length};
  const std::uint64_t longest = codec == Codec::raw ? piece_bytes : payload_.size();
  for (std::uint64_t at = 0; at < range.length;) {
    const ByteRange piece{range.offset + at, std::min(longest, range.length - at)};
    if (!memory->populate(piece))
      co_return failed(PeerFailure::protocol, "sent memory that cannot be read");
    result.bytes += land_piece(*memory, piece, codec, landing);
    at += piece.length;
    if (memory->generation() != reply.generation) {
      ++local_.traffic.same_host_reads_discarded;
      co_return taken_back(reply.progress);
    }
    if (at == range.length) break;
    co_await asio::post(io_, asio::use_awaitable);
    if (!is_open()) {
      result.failure = PeerFailure::unreachable;
      result.detail = "the connection was closed";
      co_return result;
    }
  }
  result.same_host = true;
  co_return result;
}

// The landed parameters stay valid when this fails; the next pull then finds the connection broken.
asio::awaitable<void> MappedPeer::release(bool landed) {
  const auto frame = wire::encode(wire::Release{landed}, next_request_id_++);
  const auto broken = co_await socket_->write(frame);
  if (broken) close();
}

// Lets the memory of a peer that dies go at once, not with the next pull from it.
void MappedPeer::watch() {
  if (watching_) return;
  watching_ = true;
  // Only this object owns its socket, so the object exists while the socket does.
  const std::weak_ptr<FrameSocket> watched = socket_;
  socket_->socket().async_wait(stream_protocol::socket::wait_read,
                               [this, watched](const boost::system::error_code& error) {
                                 const auto socket = watched.lock();
                                 if (!socket) return;  // there is another one, or no peer
                                 watching_ = false;
                                 if (error || busy_)
                                   return;  // the end of the next pull watches again
                                 if (socket->quiet()) {
                                   watch();  // that was an answer long read
                                 } else {
                                   close();
                                 }
                               });
}

}  // namespace dpwa::same_host
