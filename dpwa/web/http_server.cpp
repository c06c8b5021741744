#include "dpwa/web/http_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <system_error>
#include <utility>

#include "dpwa/net/coroutine.h"
#include "dpwa/web/access.h"

namespace dpwa::web {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr std::size_t most_visits = 64;
constexpr std::uint32_t most_header_bytes = 8 << 10;
constexpr auto request_time = std::chrono::seconds(10);
constexpr auto response_time = std::chrono::seconds(30);

using Message = http::response<http::string_body>;

Request request_of(const http::request<http::empty_body>& message) {
  return {.method = std::string(message.method_string()),
          .target = std::string(message.target()),
          .host = std::string(message[http::field::host]),
          .authorization = std::string(message[http::field::authorization])};
}

Message message_of(Response response, unsigned version, bool keep_alive, bool head) {
  Message message(http::int_to_status(response.status), version);
  message.set(http::field::server, "dpwa");
  message.set(http::field::content_type, response.type);
  for (const auto& [name, value] : security_headers()) message.set(name, value);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keep_alive);
  message.content_length(response.body.size());
  if (!head) message.body() = std::move(response.body);
  return message;
}

}  // namespace

struct HttpServer::Visit {
  explicit Visit(tcp::socket socket) : stream(std::move(socket)) {}
  beast::tcp_stream stream;
};

HttpServer::HttpServer(asio::io_context& io, Handler handler)
    : io_(io),
      handler_(std::move(handler)),
      accepts_(
          io, [this](tcp::socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) {
            log(limiter_, "accept", LogLevel::warn, "web", "cannot accept: " + error);
          }) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::listen(const std::string& address, std::uint16_t port) {
  const tcp::endpoint endpoint(asio::ip::make_address(address), port);
  if (const boost::system::error_code error = accepts_.listen(endpoint)) {
    throw std::system_error(error, "cannot listen on " + address + " port " + std::to_string(port));
  }
  return accepts_.acceptor().local_endpoint().port();
}

void HttpServer::serve() {
  accepts_.run();
}

void HttpServer::stop() {
  accepts_.stop();
  for (const auto& visit : visits_) {
    if (const auto held = visit.lock()) held->stream.close();
  }
  visits_.clear();
}

void HttpServer::admit(tcp::socket socket) {
  visits_.remove_if([](const auto& visit) { return visit.expired(); });
  if (visits_.size() >= most_visits) {  // connections that say nothing must not keep others out
    if (const auto oldest = visits_.front().lock()) oldest->stream.close();
    visits_.pop_front();
  }
  auto visit = std::make_shared<Visit>(std::move(socket));
  visits_.push_back(visit);
  asio::co_spawn(io_, converse(std::move(visit)), net::rethrow);
}

asio::awaitable<void> HttpServer::converse(std::shared_ptr<Visit> visit) {
  beast::flat_buffer buffer(most_header_bytes);
  bool open = true;
  while (open) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(most_header_bytes);
    visit->stream.expires_after(request_time);
    const auto [unread, bytes] =
        co_await http::async_read(visit->stream, buffer, parser, net::as_result);
    if (unread) break;
    const auto& request = parser.get();
    const bool head = request.method() == http::verb::head;
    Request asked = request_of(request);
    Response response = co_await handler_(std::move(asked));
    Message message =
        message_of(std::move(response), request.version(), request.keep_alive(), head);
    http::response_serializer<http::string_body> serializer(message);
    serializer.split(head);
    visit->stream.expires_after(response_time);
    boost::system::error_code unsent;
    if (head) {
      std::tie(unsent, std::ignore) =
          co_await http::async_write_header(visit->stream, serializer, net::as_result);
    } else {
      std::tie(unsent, std::ignore) =
          co_await http::async_write(visit->stream, serializer, net::as_result);
    }
    open = !unsent && request.keep_alive();
  }
  visit->stream.close();
}

}  // namespace dpwa::web
