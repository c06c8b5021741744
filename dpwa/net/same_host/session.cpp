#include "dpwa/net/same_host/session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

TimePoint after(Duration time) {
  return std::chrono::steady_clock::now() + time;
}

}  // namespace

Session::Session(asio::local::stream_protocol::socket socket, SessionHost& host)
    : socket_(std::move(socket)),
      host_(host),
      local_(host.local),
      requests_(host.options.max_requests_per_second, socket_.socket().get_executor()) {}

void Session::close() {
  host_.thread.check();
  socket_.close();
  requests_.cancel();
}

void Session::start() {
  auto self = shared_from_this();
  asio::co_spawn(socket_.socket().get_executor(), run(), [self](std::exception_ptr failure) {
    self->close();
    self->host_.forget(*self);
    const auto why = net::internal_failure(std::move(failure));
    if (why) self->host_.report(*why, self->peer_);
  });
}

// The kernel vouches for the user; processes of one user are not told apart any further.
Caller Session::caller() const {
  return Caller::known(peer_ + " of this host", "this host");
}

void Session::protocol_error(const std::string& what) {
  ++local_.traffic.protocol_errors;
  host_.report({net::Failure::Kind::protocol, "connection closed: " + what}, peer_);
}

asio::awaitable<void> Session::run() {
  {
    const net::Deadline deadline(socket_.socket().get_executor(),
                                 after(host_.options.handshake_timeout), [this] { close(); });
    const bool admitted = co_await handshake();
    if (!admitted) {
      ++local_.traffic.connections_refused;
      co_return;
    }
  }
  constexpr auto requests = net::types(MessageType::pull);
  while (!host_.stopping) {
    auto request = co_await socket_.read_frame(requests);
    if (!request) {
      if (request.error().is_protocol()) protocol_error(request.error().detail);
      co_return;
    }
    co_await requests_.wait();
    net::Frame frame = std::move(*request);
    const bool answered = co_await answer(std::move(frame));
    if (!answered) co_return;
  }
}

// The caller was welcomed over TCP before, where a refusal is explained at length.
asio::awaitable<bool> Session::handshake() {
  constexpr auto expected = net::types(MessageType::hello);
  const auto frame = co_await socket_.read_frame(expected);
  if (!frame) {
    if (frame.error().is_protocol()) protocol_error(frame.error().detail);
    co_return false;
  }
  const std::uint32_t request_id = frame->header.request_id;
  const auto hello = wire::decode_hello(frame->body);
  if (!hello) {
    protocol_error(hello.error().detail);
    co_return false;
  }
  auto reject = examine_hello(*hello, local_);
  const bool fits =
      hello->role == wire::Role::node && hello->fingerprint == local_.manifest.fingerprint();
  if (!reject && !fits) {
    reject = wire::Reject{wire::RejectCode::model, "the models differ"};
  }
  if (reject) {
    host_.report({net::Failure::Kind::rejected, "refused: " + reject->reason, reject->code}, peer_);
    auto refusal = wire::encode(*reject, request_id);
    co_await send(std::move(refusal));
    co_return false;
  }
  peer_ = hello->node;
  incarnation_ = hello->incarnation;
  wire::Welcome welcome;
  welcome.node = local_.name;
  welcome.incarnation = local_.incarnation;
  welcome.capabilities = wire::capability(Codec::raw);
  welcome.state = local_.state.load();
  auto encoded = wire::encode(welcome, request_id);
  co_return co_await send(std::move(encoded));
}

asio::awaitable<bool> Session::answer(net::Frame request) {
  const auto pull = wire::decode_pull(request.body);
  if (!pull) {
    protocol_error(pull.error().detail);
    co_return false;
  }
  const std::uint32_t request_id = request.header.request_id;
  if (pull->taken) local_.statements.put(peer_, {incarnation_, *pull->taken});
  const TimePoint asked = after({});
  const bool busy = !host_.readers.may_begin(caller(), asked);
  auto admission = examine_pull(*pull, local_, busy, asked);
  if (const auto* refusal = std::get_if<PullRefusal>(&admission)) {
    if (refusal->has_final) local_.note_served(peer_, *refusal->has_final, *pull);
    auto frame = encode(*refusal, request_id);
    co_return co_await send(std::move(frame));
  }
  PullGrant grant = std::move(std::get<PullGrant>(admission));
  co_return co_await lend(std::move(grant), *pull, request_id);
}

asio::awaitable<bool> Session::lend(PullGrant grant, wire::Pull pull, std::uint32_t request_id) {
  const Snapshot& snapshot = *grant.snapshot;
  const std::uint64_t bit = std::uint64_t{1} << snapshot.buffer();
  wire::Mapped message;
  message.progress = snapshot.progress();
  message.state = grant.state;
  message.offset = grant.range.offset;
  message.length = grant.range.length;
  message.generation = snapshot.file()->generation();
  message.buffer = snapshot.buffer();
  message.with_descriptor = (handed_over_ & bit) == 0;
  const int descriptor = message.with_descriptor ? snapshot.file()->descriptor() : -1;
  auto frame = wire::encode(message, request_id);

  const Duration time = std::min<Duration>(std::chrono::milliseconds(pull.deadline_ms),
                                           host_.options.longest_reply(pull.full));
  const net::Deadline deadline(socket_.socket().get_executor(), after(time), [this] {
    ++local_.traffic.same_host_leases_expired;
    close();
  });
  const Caller reader = caller();
  host_.readers.begin(reader);
  lending_ = true;
  bool whole = false;
  const OnExit over([this, &whole, &reader, begun = after({})] {
    lending_ = false;
    const TimePoint ended = after({});
    host_.readers.end(reader, ended - begun, whole, ended);
  });
  const auto released = co_await lend_until_released(std::move(frame), descriptor);
  whole = released.has_value();
  if (!released) {
    if (released.error().is_protocol()) protocol_error(released.error().detail);
    co_return false;
  }
  handed_over_ |= bit;
  if (released->landed) {
    ++local_.traffic.snapshots_served;
    ++local_.traffic.same_host_served;
    local_.traffic.bytes_served +=
        payload_bytes(local_.manifest, pull.codec, grant.range, pull.chunk_bytes);
    local_.note_served(peer_, message.progress, pull);
  }
  co_return true;
}

asio::awaitable<net::IoResult<wire::Release>> Session::lend_until_released(
    std::vector<std::byte> frame, int descriptor) {
  const auto broken = co_await socket_.write(frame, descriptor);
  if (broken) {
    net::Failure failure(broken);
    co_return failure;
  }
  constexpr auto expected = net::types(MessageType::release);
  const auto answer = co_await socket_.read_frame(expected);
  if (!answer) co_return answer.error();
  const auto release = wire::decode_release(answer->body);
  if (!release) {
    net::Failure failure(release.error());
    co_return failure;
  }
  co_return *release;
}

asio::awaitable<bool> Session::send(std::vector<std::byte> frame) {
  const auto error = co_await socket_.write(frame);
  co_return !error;
}

}  // namespace dpwa::same_host
