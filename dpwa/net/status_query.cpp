#include "dpwa/net/status_query.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/session/requests.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

namespace asio = boost::asio;
using wire::MessageType;

// The frame of a question with this number.
using Question = std::function<std::vector<std::byte>(std::uint32_t)>;

asio::awaitable<std::optional<net::Failure>> ask_status(net::Connection& connection,
                                                        const Question& question,
                                                        StatusAnswer& answer) {
  session::Requests requests;
  const net::TypeSet answers = net::types(MessageType::status, MessageType::reject);
  auto request = question(requests.begin(answers));
  const auto asked_us = static_cast<std::int64_t>(wall_clock_us());
  const auto asked = std::chrono::steady_clock::now();
  auto failure = co_await connection.send(std::move(request));
  if (failure) co_return failure;
  const net::Expected expected(answers);
  const auto frame = co_await connection.receive(expected);
  answer.round_trip = std::chrono::steady_clock::now() - asked;
  answer.middle_us = asked_us + answer.round_trip / std::chrono::microseconds(2);
  if (!frame) {
    failure = frame.error();
  } else if (!requests.answered(frame->header)) {
    failure = net::Failure(net::Failure::Kind::protocol, "answered another request");
  } else if (frame->header.type == MessageType::reject) {
    const auto reject = wire::decode_reject(frame->body);
    failure = reject ? net::Failure(*reject) : net::Failure(reject.error());
  } else {
    auto status = wire::decode_status(frame->body);
    if (status) answer.json = std::move(status->json);
    if (!status) failure = net::Failure(status.error());
  }
  co_return failure;
}

asio::awaitable<void> ask(const std::string& cluster, const PeerAddress& node, Duration timeout,
                          const Security* security, const Question& question,
                          StatusAnswer& answer) {
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
  if (welcome) failure = co_await ask_status(connection, question, answer);
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

// `questions`: one for each node.
std::vector<StatusAnswer> query(const std::string& cluster, const std::vector<PeerAddress>& nodes,
                                const std::vector<Question>& questions, Duration timeout,
                                const Security* security) {
  asio::io_context io(1);
  std::vector<StatusAnswer> answers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    answers[i].name = nodes[i].name;
    asio::co_spawn(io, ask(cluster, nodes[i], timeout, security, questions[i], answers[i]),
                   [](std::exception_ptr failure) {
                     if (failure) std::rethrow_exception(failure);
                   });
  }
  io.run();
  return answers;
}

}  // namespace

std::vector<StatusAnswer> query_status(const std::string& cluster,
                                       const std::vector<PeerAddress>& nodes, Duration timeout,
                                       const Security* security) {
  const std::vector<Question> questions(nodes.size(), [](std::uint32_t number) {
    return wire::encode_empty(MessageType::status_request, number);
  });
  return query(cluster, nodes, questions, timeout, security);
}

std::vector<StatusAnswer> query_traces(const std::string& cluster,
                                       const std::vector<PeerAddress>& nodes,
                                       const std::vector<wire::TraceRequest>& requests,
                                       Duration timeout, const Security* security) {
  std::vector<Question> questions;
  for (const wire::TraceRequest& request : requests)
    questions.push_back([request](std::uint32_t number) { return wire::encode(request, number); });
  return query(cluster, nodes, questions, timeout, security);
}

}  // namespace dpwa
