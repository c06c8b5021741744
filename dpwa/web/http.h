#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dpwa::web {

// A request without a body, as its headers state it.
struct Request {
  std::string method;
  std::string target;         // path and query, such as "/api/node?name=w1"
  std::string host;           // of the header Host; empty: there is none
  std::string authorization;  // of the header Authorization

  std::string_view path() const;
  // The value of a parameter of the query, decoded; empty: there is none.
  std::string parameter(std::string_view name) const;
};

struct Response {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};  // further ones
};

// Answers a request that this server admits. Called on the server's thread.
using Handler = std::function<boost::asio::awaitable<Response>(Request request)>;

// One line of text with this status, such as 404.
Response error_response(unsigned status, const std::string& reason);

}  // namespace dpwa::web
