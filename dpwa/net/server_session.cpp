#include "dpwa/net/server_session.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/certified.h"
#include "dpwa/net/deadline.h"
#include "dpwa/net/inbound.h"
#include "dpwa/net/network.h"
#include "dpwa/net/on_exit.h"
#include "dpwa/net/pull_admission.h"
#include "dpwa/net/server.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;
using wire::MessageType;

ServerSession::ServerSession(tcp::socket socket, Server& server)
    : stream_(std::move(socket)),
      server_(server),
      local_(server.local_),
      requests_(server.options_.max_requests_per_second, stream_.get_executor()) {
  boost::system::error_code error;
  const auto remote = stream_.socket().remote_endpoint(error);
  address_ = error ? "peer" : net::text_of(remote.address());
  facts_.address = net::network_of(address_);
  enter(ConnectionFacts::Phase::handshake);
}

void ServerSession::enter(ConnectionFacts::Phase phase) {
  if (facts_.phase == ConnectionFacts::Phase::closing) return;
  facts_.phase = phase;
  facts_.since = std::chrono::steady_clock::now();
}

void ServerSession::start() {
  auto self = shared_from_this();
  asio::co_spawn(stream_.get_executor(), run(), [self](std::exception_ptr failure) {
    self->close();
    self->server_.forget(*self);
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        self->server_.report(CallerFault::handler, self->address_, error.what());
      }
    }
  });
}

void ServerSession::close() {
  stream_.close();
  requests_.cancel();
  facts_.phase = ConnectionFacts::Phase::closing;
}

void ServerSession::protocol_error(const std::string& what) {
  ++local_.traffic.protocol_errors;
  server_.report(CallerFault::protocol, address_, "connection closed: " + what);
}

void ServerSession::turned_away(const net::IoFailure& failure) {
  ++local_.traffic.connections_refused;
  if (failure.protocol) ++local_.traffic.protocol_errors;
  if (failure.security) ++local_.traffic.security_failures;
  const auto fault = failure.security   ? CallerFault::security
                     : failure.protocol ? CallerFault::protocol
                                        : CallerFault::ended;
  server_.report(fault, address_, "refused a caller: " + failure.detail);
}

asio::awaitable<void> ServerSession::run() {
  {
    const net::Deadline deadline(stream_.get_executor(), after(server_.options_.handshake_timeout),
                                 [this] { close(); });
    auto failure = co_await net::secure_inbound(stream_, local_.security.get());
    if (failure && failure->detail.empty()) {
      ++local_.traffic.connections_refused;
      co_return;
    }
    if (failure) {
      if (deadline.expired()) {
        failure->detail = "took too long over its TLS handshake";
      } else if (facts_.phase == ConnectionFacts::Phase::closing) {
        failure->detail = "made room for another, before its TLS handshake was over";
      }
      turned_away(*failure);
      co_await stream_.finish();
      co_return;
    }
    const bool admitted = co_await handshake();
    if (!admitted) {
      ++local_.traffic.connections_refused;
      co_return;
    }
  }
  enter(ConnectionFacts::Phase::idle);
  auto requests = net::types(MessageType::pull, MessageType::status_request);
  if (local_.members->exchanges() && !peer_.empty()) requests |= net::types(MessageType::members);
  while (!server_.stopping_) {
    auto request = co_await net::read_frame(stream_, requests);
    if (!request) {
      if (request.error().protocol) protocol_error(request.error().detail);
      co_return;
    }
    co_await requests_.wait();
    net::Frame frame = std::move(*request);
    const bool answered = co_await answer(std::move(frame));
    if (!answered) co_return;
  }
}

asio::awaitable<bool> ServerSession::handshake() {
  constexpr auto expected = net::types(MessageType::hello);
  const auto frame = co_await net::read_frame(stream_, expected);
  if (!frame) {
    if (!frame.error().protocol) co_return false;
    protocol_error(frame.error().detail);
    if (frame.error().version_mismatch) {
      wire::Reject reject{wire::RejectCode::version, frame.error().detail};
      co_await refuse(std::move(reject), 0);
    }
    co_return false;
  }
  const std::uint32_t request_id = frame->header.request_id;
  const auto hello = wire::decode_hello(frame->body);
  if (!hello) {
    protocol_error(hello.error().detail);
    co_return false;
  }
  auto reject = examine_hello(*hello, local_);
  const auto names = stream_.certified_names();
  if (!reject && hello->role == wire::Role::node && !net::is_for(names, hello->node)) {
    reject = wire::Reject{wire::RejectCode::security, "the certificate of node '" + hello->node +
                                                          "' is for " + net::words_for(*names)};
  }
  if (reject && reject->code == wire::RejectCode::security) ++local_.traffic.security_failures;
  if (reject) {
    wire::Reject answer = std::move(*reject);
    co_return co_await refuse(std::move(answer), request_id);
  }
  peer_ = hello->node;
  const bool is_node = hello->role == wire::Role::node;
  incarnation_ = hello->incarnation;
  if (is_node) {
    const bool admitted = co_await bears_its_name(request_id);
    if (!admitted) co_return false;
  }
  caller_ = identify(*hello);
  facts_.peer = caller_.account;
  facts_.of_file = caller_.is_known && local_.members->is_seed(peer_);
  if (!server_.introduce(*this, !is_node)) co_return false;
  if (is_node && hello->fingerprint != local_.manifest.fingerprint())
    co_return co_await explain_model(request_id);
  if (is_node) {
    local_.members->heard(peer_, incarnation_);
    server_.events_.on_contact(peer_, incarnation_);
  }

  wire::Welcome welcome{local_.name, local_.incarnation, local_.capabilities(),
                        local_.state.load()};
  const Progress progress = local_.store.progress();
  welcome.clock = progress.clock;
  welcome.lineage = progress.lineage;
  if (is_node) welcome.same_host = server_.offer_to(stream_.socket());
  auto encoded = wire::encode(welcome, request_id);
  co_return co_await send(std::move(encoded));
}

// A name alone proves nothing: a certificate does, and so, as far as it goes, does the address that
// the file has of it.
Caller ServerSession::identify(const wire::Hello& hello) const {
  const std::string& network = facts_.address;
  const bool is_node = hello.role == wire::Role::node;
  const std::string named = is_node ? hello.node : observers;
  if (is_node && stream_.certified_names()) return Caller::known(named, network);
  const std::string account = named + " at " + network;
  const bool known = is_node && local_.members->is_seed_at(named, network);
  return known ? Caller::known(account, network) : Caller::stranger(account, network);
}

// One caller at a time, and no description that is far larger than the own: each is held in memory.
asio::awaitable<bool> ServerSession::explain_model(std::uint32_t request_id) {
  constexpr std::uint64_t least = 4U << 20;
  if (server_.explains_model_) {
    auto reject = model_reject(local_, peer_);
    co_return co_await refuse(std::move(reject), request_id);
  }
  server_.explains_model_ = true;
  const net::OnExit over([this] { server_.explains_model_ = false; });
  const std::uint64_t own = wire::encode(local_.manifest, request_id).size();
  auto request = wire::encode_empty(MessageType::manifest_request, request_id);
  const bool asked = co_await send(std::move(request));
  if (!asked) co_return false;
  constexpr auto expected = net::types(MessageType::manifest);
  const auto frame = co_await net::read_frame(stream_, expected, std::max(least, 4 * own));
  if (!frame) {
    if (frame.error().protocol) protocol_error(frame.error().detail);
    co_return false;
  }
  const auto manifest = wire::decode_manifest(frame->body);
  if (!manifest) {
    protocol_error(manifest.error().detail);
    co_return false;
  }
  auto reject = model_reject(local_, peer_, *manifest);
  co_return co_await refuse(std::move(reject), request_id);
}

// Always false: the connection ends with a REJECT.
asio::awaitable<bool> ServerSession::refuse(wire::Reject reject, std::uint32_t request_id) {
  server_.report(fault_of(reject.code), address_,
                 "refused " + (peer_.empty() ? std::string("a caller") : "'" + peer_ + "'") + ": " +
                     reject.reason);
  auto frame = wire::encode(reject, request_id);
  co_await send(std::move(frame));
  co_return false;
}

asio::awaitable<bool> ServerSession::answer(net::Frame request) {
  const std::uint32_t request_id = request.header.request_id;
  if (request.header.type == MessageType::status_request) {
    wire::Status status;
    status.json = co_await server_.events_.status_json();
    auto frame = wire::encode(status, request_id);
    co_return co_await send(std::move(frame));
  }
  if (request.header.type == MessageType::members) {
    co_return co_await answer_members(std::move(request));
  }
  const auto pull = wire::decode_pull(request.body);
  if (!pull) {
    protocol_error(pull.error().detail);
    co_return false;
  }
  co_return co_await answer_pull(*pull, request_id);
}

asio::awaitable<bool> ServerSession::bears_its_name(std::uint32_t request_id) {
  std::string name = peer_;
  const auto verdict =
      co_await server_.name_guard_.examine(std::move(name), incarnation_, facts_.address);
  if (verdict.admitted) co_return true;
  if (verdict.refusal.empty()) co_return false;
  wire::Reject reject{wire::RejectCode::own_name, verdict.refusal};
  co_return co_await refuse(std::move(reject), request_id);
}

asio::awaitable<bool> ServerSession::answer_members(net::Frame request) {
  auto exchange = wire::decode_members(request.body);
  const bool of_itself = exchange && exchange->claims[0].name == peer_ &&
                         exchange->claims[0].incarnation == incarnation_;
  if (!of_itself) {
    protocol_error(exchange ? "MEMBERS that does not begin with its sender"
                            : exchange.error().detail);
    co_return false;
  }
  const std::uint32_t request_id = request.header.request_id;
  const bool admitted = co_await bears_its_name(request_id);
  if (!admitted) co_return false;
  Members& members = *local_.members;
  // Anybody may borrow the name of a node of the file; that it has left is not believed from
  // elsewhere. If it has, its peers find out.
  MemberClaim& itself = exchange->claims[0];
  if (borrows_name() && itself.status == MemberStatus::left) itself.status = MemberStatus::alive;
  members.merge(peer_, incarnation_, *exchange, address_);
  server_.events_.on_contact(peer_, incarnation_);
  const MemberExchange told = members.answer(peer_, *exchange);
  auto frame = wire::encode(told, request_id);
  co_return co_await send(std::move(frame));
}

asio::awaitable<bool> ServerSession::answer_pull(const wire::Pull& pull, std::uint32_t request_id) {
  const bool busy = !server_.readers_.may_begin(caller_, after({}));
  const auto answer = examine_pull(pull, local_, busy);
  if (const auto* refusal = std::get_if<PullRefusal>(&answer)) {
    auto frame = encode(*refusal, request_id);
    co_return co_await send(std::move(frame));
  }
  const auto& [snapshot, state, range] = std::get<PullGrant>(answer);
  std::optional<StagingPool::Lease> staging;
  if (pull.codec != Codec::raw) {
    staging = server_.staging_.lend(std::min<std::uint64_t>(pull.chunk_bytes, range.length));
    if (!staging) {
      auto frame = wire::encode_empty(MessageType::busy, request_id);
      co_return co_await send(std::move(frame));
    }
  }

  wire::SnapshotHead head;
  head.progress = snapshot->progress();
  head.state = state;
  head.codec = pull.codec;
  head.offset = range.offset;
  head.length = range.length;
  head.chunk_bytes = pull.chunk_bytes;
  head.unchecked_chunks = pull.unchecked_chunks && !local_.chunk_checksums;
  const Duration time = std::min<Duration>(std::chrono::milliseconds(pull.deadline_ms),
                                           server_.options_.longest_reply(pull.full));
  const net::Deadline deadline(stream_.get_executor(), after(time), [this] { close(); });
  server_.readers_.begin(caller_);
  enter(ConnectionFacts::Phase::replying);
  bool sent = false;
  const net::OnExit over([this, &sent, begun = facts_.since] {
    enter(ConnectionFacts::Phase::idle);
    const TimePoint now = after({});
    server_.readers_.end(caller_, now - begun, sent, now);
  });
  ServedChunks chunks(local_.manifest, snapshot, pull.codec, !head.unchecked_chunks,
                      std::move(staging));
  sent = co_await send_snapshot(std::move(chunks), head, request_id);
  if (sent && !peer_.empty() && !borrows_name())
    server_.events_.on_served(peer_, head.progress, use_of(pull));
  co_return sent;
}

bool ServerSession::borrows_name() const {
  return !caller_.is_known && local_.members->is_seed(peer_);
}

asio::awaitable<bool> ServerSession::send_snapshot(ServedChunks chunks, wire::SnapshotHead head,
                                                   std::uint32_t request_id) {
  const ByteRange range{head.offset, head.length};
  const auto lead = wire::encode(
      head, request_id, payload_bytes(local_.manifest, head.codec, range, head.chunk_bytes));
  std::size_t lead_bytes = lead.size();  // frame header and head leave with the first chunk
  for (std::uint64_t at = 0; at < range.length || lead_bytes > 0;) {
    const auto size = std::min<std::uint64_t>(head.chunk_bytes, range.length - at);
    const ServedChunks::Chunk chunk = chunks.get({range.offset + at, size});
    const wire::ChunkHeader description{static_cast<std::uint32_t>(chunk.payload.size()),
                                        chunk.crc};
    const auto chunk_header = wire::encode_chunk_header(description);
    const std::array<asio::const_buffer, 3> buffers{
        asio::buffer(lead.data(), lead_bytes),
        asio::buffer(chunk_header.data(), size == 0 ? 0 : chunk_header.size()),
        asio::buffer(chunk.payload.data(), chunk.payload.size())};
    const auto error = co_await stream_.write_all(buffers);
    if (error) co_return false;
    local_.traffic.bytes_served += asio::buffer_size(buffers);
    at += size;
    lead_bytes = 0;
  }
  ++local_.traffic.snapshots_served;
  co_return true;
}

asio::awaitable<bool> ServerSession::send(std::vector<std::byte> frame) {
  const auto error = co_await stream_.write_all(frame);
  co_return !error;
}

}  // namespace dpwa
