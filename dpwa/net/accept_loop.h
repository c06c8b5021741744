#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace dpwa::net {

// Accepts one connection after the other until stop(). A failure, e.g. for want of descriptors, is
// reported and followed by a pause. Used on one thread; outlives what its io_context runs.
template <typename Protocol>
class AcceptLoop {
 public:
  using Socket = typename Protocol::socket;
  using Admit = std::function<void(Socket socket)>;
  using Report = std::function<void(const std::string& error)>;

  AcceptLoop(boost::asio::io_context& io, Admit admit, Report report)
      : acceptor_(io), retry_(io), admit_(std::move(admit)), report_(std::move(report)) {}

  typename Protocol::acceptor& acceptor() { return acceptor_; }  // to be bound by the owner

  // Binds and listens in the owner's place. After an error it may be called again.
  boost::system::error_code listen(const typename Protocol::endpoint& endpoint) {
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    boost::system::error_code ignored;
    if (error) acceptor_.close(ignored);
    return error;
  }

  void run() {  // begins
    acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
      if (stopped_ || error == boost::asio::error::operation_aborted) return;
      if (!error) {
        // Before the caller is admitted, so that an exception there does not stop the loop.
        run();
        admit_(std::move(socket));
        return;
      }
      report_(error.message());
      retry_.expires_after(pause);
      retry_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled) run();
      });
    });
  }

  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  static constexpr auto pause = std::chrono::milliseconds(100);

  typename Protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  const Admit admit_;
  const Report report_;
  bool stopped_ = false;
};

}  // namespace dpwa::net
