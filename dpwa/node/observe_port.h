#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/web/access.h"
#include "dpwa/web/http_server.h"

namespace dpwa {

// The token of the readers of its metrics; empty: none. Throws ConfigError when it cannot be read.
std::string observe_token(const Config& config);

// What a process tells over HTTP (section `observe` of the cluster file): `/healthz`, its state in
// one word, for everyone, and `/metrics` for readers with the token. Used on the I/O thread of the
// process, apart from the constructor and listen().
class ObservePort {
 public:
  using Describe = std::function<boost::asio::awaitable<std::string>()>;  // gives the status

  // Throws ConfigError when the token cannot be read.
  ObservePort(boost::asio::io_context& io, const Config& config, const NodeEntry& at,
              const std::string& address);

  void describe_by(Describe describe) { describe_ = std::move(describe); }  // before listen()

  // A port that is in use is a line in the log and no reason to end: the training does not need it.
  void listen();
  void stop() { server_.stop(); }

 private:
  boost::asio::awaitable<web::Response> answer(web::Request request);
  // The state in one word. Everyone may ask for it, so the process is looked at once a second.
  boost::asio::awaitable<std::string> look();

  const std::string name_;
  const std::string address_;
  const std::uint16_t port_;
  Describe describe_;
  web::Access access_;
  web::HttpServer server_;
  std::string state_;
  TimePoint looked_;
};

}  // namespace dpwa
