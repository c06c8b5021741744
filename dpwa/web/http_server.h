#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "dpwa/log/log.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/web/http.h"

namespace dpwa::web {

// Serves requests over HTTP/1.1 without TLS. Bounds: 64 connections, 8 KiB of headers, no bodies,
// 10 s for a request, 30 s for the caller to take the response. Lives on one io_context that one
// thread runs: listen() before that thread starts, stop() from it.
class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, Handler handler);
  ~HttpServer();

  // Binds and listens; returns the port. `address`: numeric; port 0: any free one. Throws
  // std::system_error that names address, port and cause.
  std::uint16_t listen(const std::string& address, std::uint16_t port);
  void serve();  // begins to accept
  void stop();   // closes all connections; idempotent

 private:
  struct Visit;

  void admit(boost::asio::ip::tcp::socket socket);
  boost::asio::awaitable<void> converse(std::shared_ptr<Visit> visit);

  boost::asio::io_context& io_;
  const Handler handler_;
  net::AcceptLoop<boost::asio::ip::tcp> accepts_;
  std::list<std::weak_ptr<Visit>> visits_;
  LogLimiter limiter_;
};

}  // namespace dpwa::web
