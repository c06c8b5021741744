#include "dpwa/web/http_server.h"

#include <doctest/doctest.h>

#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/support/raw_socket.h"

namespace dpwa {

namespace {

class Served {
 public:
  Served()
      : server_(io_,
                [](web::Request request) -> boost::asio::awaitable<web::Response> {
                  co_return web::Response{.body = "asked for " + request.target};
                }),
        port_(server_.listen("127.0.0.1", 0)) {
    server_.serve();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Served() {
    boost::asio::post(io_, [this] { server_.stop(); });
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

 private:
  boost::asio::io_context io_{1};
  web::HttpServer server_;
  const std::uint16_t port_;
  std::thread thread_;
};

// All that the server sends until the end of `last`, or of the connection.
std::string answer_until(test::RawSocket& socket, const std::string& last) {
  std::string text;
  while (!text.ends_with(last)) {
    const auto byte = socket.read(1);
    if (!byte) break;
    text += static_cast<char>(byte->front());
  }
  return text;
}

}  // namespace

TEST_CASE("a server answers several requests of one connection, with the headers of security") {
  const Served served;
  test::RawSocket socket(served.port());
  for (const std::string target : {"/a", "/b?c=d"}) {
    REQUIRE(socket.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const std::string answer = answer_until(socket, "asked for " + target);
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.find("Content-Security-Policy: default-src 'none'") != answer.npos);
    CHECK(answer.find("frame-ancestors 'none'") != answer.npos);
    CHECK(answer.find("Set-Cookie") == answer.npos);
  }
  REQUIRE(socket.send("HEAD /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  CHECK(answer_until(socket, "nothing").ends_with("Content-Length: 12\r\n\r\n"));
}

TEST_CASE("connections that say nothing do not keep others out") {
  const Served served;
  std::vector<std::unique_ptr<test::RawSocket>> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<test::RawSocket>(served.port()));
    silent.back()->send("GET / HTTP/1.1\r\nHost: ");
  }
  test::RawSocket socket(served.port());
  REQUIRE(socket.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  CHECK(answer_until(socket, "asked for /a").ends_with("asked for /a"));
}

TEST_CASE("a connection ends that sends no HTTP, a body, or headers beyond the bound") {
  const Served served;
  const std::string body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  const std::string long_header = "GET / HTTP/1.1\r\nHost: " + std::string(10000, 'a') + "\r\n\r\n";
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00 nonsense\r\n\r\n", 18), body, long_header}) {
    test::RawSocket socket(served.port());
    socket.send(bytes);
    CHECK(answer_until(socket, "asked for /").find("asked") == std::string::npos);
  }
  test::RawSocket idle(served.port());  // the server stops all the same
}

}  // namespace dpwa
