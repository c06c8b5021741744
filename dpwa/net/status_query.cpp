#include "dpwa/net/status_query.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>

#include "dpwa/net/connect.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using wire::MessageType;

// Sends `request` and reads the reply of type `wanted`; a REJECT or any failure becomes `error`.
asio::awaitable<std::vector<std::byte>> exchange(net::Connection& connection,
                                                 std::vector<std::byte> request, MessageType wanted,
                                                 std::string& error) {
  const auto written = co_await connection.send(std::move(request));
  std::vector<std::byte> body;
  if (written) {
    error = written->detail;
    co_return body;
  }
  const net::Expected replies(net::types(wanted, MessageType::reject));
  auto frame = co_await connection.receive(replies);
  if (!frame) {
    error = frame.error().detail;
  } else if (frame->header.type == MessageType::reject) {
    const auto reject = wire::decode_reject(frame->body);
    error = reject ? reject->reason : reject.error().detail;
  } else {
    body = std::move(frame->body);
  }
  co_return body;
}

asio::awaitable<void> ask(const std::string& cluster, const PeerAddress& node, Duration timeout,
                          const Security* security, StatusAnswer& answer) {
  net::Connection connection(co_await asio::this_coro::executor);
  net::Stream& stream = connection.stream();
  const TimePoint when = std::chrono::steady_clock::now() + timeout;
  const net::Deadline deadline(stream.get_executor(), when, [&stream] { stream.close(); });
  auto failure = co_await net::connect(stream.socket(), node);
  if (!failure) failure = co_await net::secure(stream, node, security);
  if (failure) {
    answer.error = failure->detail;
    answer.nobody_listens = failure->nobody_listens;
  }
  if (answer.error.empty()) {
    wire::Hello hello;
    hello.role = wire::Role::observer;
    hello.capabilities = wire::capability(wire::Codec::raw);
    hello.cluster = cluster;
    auto greeting = wire::encode(hello, 1);
    co_await exchange(connection, std::move(greeting), MessageType::welcome, answer.error);
  }
  if (answer.error.empty()) {
    auto request = wire::encode_empty(MessageType::status_request, 2);
    const auto body =
        co_await exchange(connection, std::move(request), MessageType::status, answer.error);
    if (answer.error.empty()) {
      const auto status = wire::decode_status(body);
      if (status) answer.json = status->json;
      if (!status) answer.error = status.error().detail;
    }
  }
  if (deadline.expired()) {
    answer.error = "no answer in time";
    answer.nobody_listens = false;
  }
}

}  // namespace

std::vector<StatusAnswer> query_status(const std::string& cluster,
                                       const std::vector<PeerAddress>& nodes, Duration timeout,
                                       const Security* security) {
  asio::io_context io(1);
  std::vector<StatusAnswer> answers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    answers[i].name = nodes[i].name;
    asio::co_spawn(io, ask(cluster, nodes[i], timeout, security, answers[i]),
                   [](std::exception_ptr failure) {
                     if (failure) std::rethrow_exception(failure);
                   });
  }
  io.run();
  return answers;
}

}  // namespace dpwa
