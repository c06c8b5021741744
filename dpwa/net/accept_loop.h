#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
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

  // Begins; later: goes on where a handler was lost because memory was refused. Throws
  // std::bad_alloc when it is refused again.
  void run() {
    if (!*accepting_ && !stopped_) accept_next();
  }

  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

 private:
  static constexpr auto pause = std::chrono::milliseconds(100);

  // Goes with its handler, also with one that Asio gives up before it calls it, for want of memory
  // to register the new socket: the loop would be held to go on for ever.
  class Pending {
   public:
    explicit Pending(std::shared_ptr<bool> flag) : flag_(std::move(flag)) { *flag_ = true; }
    Pending(Pending&&) noexcept = default;
    Pending& operator=(Pending&&) = delete;
    ~Pending() { end(); }
    void end() {
      if (flag_) *flag_ = false;
      flag_.reset();
    }

   private:
    std::shared_ptr<bool> flag_;
  };

  void accept_next() {
    acceptor_.async_accept([this, pending = Pending(accepting_)](
                               const boost::system::error_code& error, Socket socket) mutable {
      pending.end();
      if (stopped_ || error == boost::asio::error::operation_aborted) return;
      if (!error) {
        admit_(std::move(socket));
        run();
        return;
      }
      report_(error.message());
      retry_.expires_after(pause);
      retry_.async_wait(
          [this, waits = Pending(accepting_)](const boost::system::error_code& cancelled) mutable {
            waits.end();
            if (!cancelled) run();
          });
    });
  }

  typename Protocol::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  const Admit admit_;
  const Report report_;
  const std::shared_ptr<bool> accepting_ = std::make_shared<bool>(false);  // or waiting to
  bool stopped_ = false;
};

}  // namespace dpwa::net
