#include "dpwa/node/waiting_node.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/version.h"
#include "dpwa/config/names.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/frame_io.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/stream.h"
#include "dpwa/node/listen.h"
#include "dpwa/security/security.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;
using wire::MessageType;

namespace {

// Bounds for observers. A caller that stays longer, or that comes when so many are connected, is
// disconnected.
constexpr std::size_t most_callers = 64;
constexpr auto longest_call = std::chrono::seconds(5);

std::string document_of(const Config& config) {
  nlohmann::ordered_json out;
  out["schema"] = 1;
  out["version"] = version();
  out["cluster"] = config.cluster;
  out["node"] = config.self;
  out["backend"] = config::name_of(config.backend);
  out["state"] = "waiting";
  out["clock"] = nullptr;
  out["loss"] = nullptr;
  return out.dump();
}

}  // namespace

class WaitingNode::Listener {
 public:
  explicit Listener(const Config& config)
      : cluster_(config.cluster),
        name_(config.self),
        document_(document_of(config)),
        security_(make_security(config)),
        accepts_(
            io_, [this](tcp::socket socket) { admit(std::move(socket)); },
            [](const std::string&) {}) {
    listen(config.self_node());
    accepts_.run();
    thread_ = start_background_thread([this] {
      name_thread("dpwa-waiting");
      net::run_io(io_);
    });
  }

  ~Listener() {
    asio::post(io_, [this] {
      accepts_.stop();
      for (const auto& caller : callers_) caller->close();
    });
    thread_.join();
  }

  std::uint16_t port() { return port_; }

 private:
  void listen(const NodeEntry& self) {
    const std::string& bind = self.bind_address.empty() ? self.bind_host() : self.bind_address;
    boost::system::error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(bind, error), self.port);
    tcp::acceptor& acceptor = accepts_.acceptor();
    if (!error) acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      throw std::runtime_error("cannot listen on " + bind + " port " + std::to_string(self.port) +
                               ": " + error.message() +
                               (error == asio::error::address_in_use ? held_by(self) : ""));
    }
    warn_of_strangers(self, security_ != nullptr);
    port_ = acceptor.local_endpoint().port();
  }

  void admit(tcp::socket socket) {
    if (callers_.size() >= most_callers) return;
    auto caller = std::make_shared<net::Stream>(std::move(socket));
    callers_.push_back(caller);
    asio::co_spawn(io_, answer(caller), [this, caller](const std::exception_ptr&) {
      caller->close();
      callers_.remove(caller);
    });
  }

  asio::awaitable<void> answer(std::shared_ptr<net::Stream> caller) {
    const TimePoint end = std::chrono::steady_clock::now() + longest_call;
    const net::Deadline deadline(io_, end, [&caller] { caller->close(); });
    const auto failure = co_await net::secure_inbound(*caller, security_.get());
    if (failure) {
      if (!failure->detail.empty()) co_await caller->finish();
      co_return;
    }
    const bool may_ask = co_await greet(*caller);
    if (!may_ask) co_return;
    constexpr auto requests = net::types(MessageType::status_request);
    while (const auto request = co_await net::read_frame(*caller, requests)) {
      wire::Status status;
      status.json = document_;
      const auto frame = wire::encode(status, request->header.request_id);
      const auto error = co_await caller->write_all(frame);
      if (error) co_return;
    }
  }

  asio::awaitable<bool> greet(net::Stream& caller) {
    constexpr auto expected = net::types(MessageType::hello);
    const auto frame = co_await net::read_frame(caller, expected);
    if (!frame) co_return false;
    const auto hello = wire::decode_hello(frame->body);
    if (!hello || hello->role != wire::Role::observer) co_return false;
    const std::uint32_t id = frame->header.request_id;
    const bool ours = hello->cluster == cluster_;
    const wire::Reject stranger{
        wire::RejectCode::cluster,
        "node '" + name_ + "' belongs to cluster '" + cluster_ + "', not '" + hello->cluster + "'"};
    const wire::Welcome welcome{name_, 0, wire::all_codecs, wire::NodeState::joining};
    const auto reply = ours ? wire::encode(welcome, id) : wire::encode(stranger, id);
    const auto error = co_await caller.write_all(reply);
    co_return ours && !error;
  }

  const std::string cluster_;
  const std::string name_;
  const std::string document_;
  const std::shared_ptr<Security> security_;
  asio::io_context io_{1};
  net::AcceptLoop<tcp> accepts_;
  std::list<std::shared_ptr<net::Stream>> callers_;  // belongs to thread_
  std::uint16_t port_ = 0;
  std::thread thread_;
};

WaitingNode::WaitingNode(const Config& config) : listener_(std::make_unique<Listener>(config)) {}
WaitingNode::~WaitingNode() = default;
std::uint16_t WaitingNode::port() const {
  return listener_->port();
}

}  // namespace dpwa
