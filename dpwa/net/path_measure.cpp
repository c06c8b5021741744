#include "dpwa/net/path_measure.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/net/connect.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/socket_progress.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using wire::MessageType;

asio::awaitable<void> measure(const std::string& cluster, const PeerAddress& node,
                              std::uint64_t most_bytes, Duration timeout, const Security* security,
                              PathMeasure& measure) {
  net::Connection connection(co_await asio::this_coro::executor);
  const TimePoint when = std::chrono::steady_clock::now() + timeout;
  const net::Deadline deadline(connection.stream().get_executor(), when,
                               [&connection] { connection.close(); });
  const auto welcome = co_await net::open_as_observer(connection, cluster, node, security);
  if (!welcome) co_return;
  wire::Pull pull;
  pull.full = true;
  pull.length = most_bytes;
  pull.deadline_ms = static_cast<std::uint32_t>(timeout / std::chrono::milliseconds(1));
  const TimePoint asked = std::chrono::steady_clock::now();
  auto request = wire::encode(pull, /*request_id=*/1);
  const auto failure = co_await connection.send(std::move(request));
  if (failure) co_return;
  net::Expected expected(net::types(MessageType::snapshot, MessageType::not_ready,
                                    MessageType::busy, MessageType::error, MessageType::reject));
  expected.most_snapshot_bytes = wire::snapshot_body_bytes(most_bytes, pull.chunk_bytes);
  const auto frame = co_await connection.receive(expected);
  if (!frame || frame->header.type != MessageType::snapshot) co_return;
  net::Incoming& incoming = connection.incoming();
  std::vector<std::byte> buffer(pull.chunk_bytes);
  while (incoming.unlanded_bytes() > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(incoming.unlanded_bytes(), buffer.size());
    incoming.land(std::span(buffer).first(part));
    while (!incoming.ready()) {
      const auto broken = co_await net::read_into(connection.stream(), incoming);
      if (broken) co_return;
    }
    measure.bytes += part;
    measure.time = std::chrono::steady_clock::now() - asked;
  }
  measure.round_trip =
      net::progress_of(connection.stream().socket().native_handle()).least_round_trip;
}

}  // namespace

PathMeasure measure_path(const std::string& cluster, const PeerAddress& node,
                         std::uint64_t most_bytes, Duration timeout, const Security* security) {
  asio::io_context io(1);
  PathMeasure result;
  asio::co_spawn(io, measure(cluster, node, most_bytes, timeout, security, result), net::rethrow);
  io.run();
  return result;
}

}  // namespace dpwa
