#include "test/process/tcp_bridge.h"

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <list>

namespace dpwa::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

struct Link : std::enable_shared_from_this<Link> {
  explicit Link(asio::io_context& io) : ends{tcp::socket(io), tcp::socket(io)} {}

  void pump(std::size_t side) {
    auto self = shared_from_this();
    ends[side].async_read_some(
        asio::buffer(buffers[side]), [self, side](const error_code& error, std::size_t bytes) {
          if (error) return self->close();
          asio::async_write(self->ends[1 - side], asio::buffer(self->buffers[side], bytes),
                            [self, side](const error_code& failed, std::size_t) {
                              failed ? self->close() : self->pump(side);
                            });
        });
  }
  void close() {
    error_code ignored;
    for (auto& end : ends) end.close(ignored);
  }

  std::array<tcp::socket, 2> ends;
  std::array<std::array<char, 16384>, 2> buffers{};
};

}  // namespace

class TcpBridge::Forwarding {
 public:
  Forwarding(std::uint16_t from, std::uint16_t to)
      : from_(asio::ip::address_v4::loopback(), from),
        to_(asio::ip::address_v4::loopback(), to),
        acceptor_(io_),
        work_(io_.get_executor()) {
    acceptor_.open(from_.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(from_);
    acceptor_.listen();
    accept();
  }

  void run() { io_.run(); }
  // Runs `what` on the thread and waits for it.
  void on_thread(void (Forwarding::*what)()) {
    std::promise<void> done;
    asio::post(io_, [&] {
      (this->*what)();
      done.set_value();
    });
    done.get_future().wait();
  }
  void mend() { cut_ = false; }
  void cut() {
    cut_ = true;
    for (const auto& held : links_) {
      if (const auto link = held.lock()) link->close();
    }
    links_.clear();
  }
  void end() {
    error_code ignored;
    acceptor_.close(ignored);
    cut();
    work_.reset();
  }

 private:
  void accept() {
    auto link = std::make_shared<Link>(io_);
    acceptor_.async_accept(link->ends[0], [this, link](const error_code& error) {
      if (error) return;
      accept();
      if (cut_) return;  // the socket closes here
      links_.push_back(link);
      link->ends[1].async_connect(to_, [link](const error_code& failed) {
        if (failed) return link->close();
        link->pump(0);
        link->pump(1);
      });
    });
  }

  asio::io_context io_{1};
  const tcp::endpoint from_;
  const tcp::endpoint to_;
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::list<std::weak_ptr<Link>> links_;
  bool cut_ = false;
};

TcpBridge::TcpBridge(std::uint16_t from, std::uint16_t to)
    : forwarding_(std::make_unique<Forwarding>(from, to)),
      thread_([this] { forwarding_->run(); }) {}

TcpBridge::~TcpBridge() {
  forwarding_->on_thread(&Forwarding::end);
  thread_.join();
}

void TcpBridge::cut() {
  forwarding_->on_thread(&Forwarding::cut);
}

void TcpBridge::mend() {
  forwarding_->on_thread(&Forwarding::mend);
}

}  // namespace dpwa::test
