#include "dpwa/net/status_query.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "dpwa/net/connect.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/session/requests.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using wire::MessageType;

asio::awaitable<std::optional<net::Failure>> ask_status(net::Connection& connection,
                                                        std::string& json) {
  session::Requests requests;
  const net::TypeSet answers = net::types(MessageType::status, MessageType::reject);
  auto request = wire::encode_empty(MessageType::status_request, requests.begin(answers));
  auto failure = co_await connection.send(std::move(request));
  if (failure) co_return failure;
  const net::Expected expected(answers);
  const auto frame = co_await connection.receive(expected);
  if (!frame) {
    failure = frame.error();
  } else if (!requests.answered(frame->header)) {
    failure = net::Failure(net::Failure::Kind::protocol, "answered another request");
  } else if (frame->header.type == MessageType::reject) {
    const auto reject = wire::decode_reject(frame->body);
    failure = reject ? net::Failure(*reject) : net::Failure(reject.error());
  } else {
    auto status = wire::decode_status(frame->body);
    if (status) json = std::move(status->json);
    if (!status) failure = net::Failure(status.error());
  }
  co_return failure;
}

asio::awaitable<void> ask(const std::string& cluster, const PeerAddress& node, Duration timeout,
                          const Security* security, StatusAnswer& answer) {
  net::Connection connection(co_await asio::this_coro::executor);
  const TimePoint when = std::chrono::steady_clock::now() + timeout;
  const net::Deadline deadline(connection.stream().get_executor(), when, [&connection, &answer] {
    boost::system::error_code error;
    (void)connection.stream().socket().remote_endpoint(error);
    answer.connected = !error;
    connection.close();
  });
  const auto welcome = co_await net::open_as_observer(connection, cluster, node, security);
  std::optional<net::Failure> failure;
  if (!welcome) failure = welcome.error();
  if (welcome) failure = co_await ask_status(connection, answer.json);
  if (!failure) answer.connected = true;
  if (failure) {
    answer.error = failure->detail;
    answer.nobody_listens = failure->nobody_listens;
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
