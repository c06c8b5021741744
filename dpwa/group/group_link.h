#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "dpwa/log/log.h"
#include "dpwa/members/group_messages.h"
#include "dpwa/net/store_link.h"

namespace dpwa::group {

// What a link tells the GroupNode that has it. Called on its I/O thread.
class LinkEvents {
 public:
  virtual void connected(const std::string& name) = 0;
  // `barred`: as of GroupEngine.
  virtual void not_reached(const std::string& name, bool nobody_listens,
                           const std::string& barred) = 0;

 protected:
  ~LinkEvents() = default;
};

// The connection of a process of a group to another one. It carries only the messages of this end;
// the other one sends over a connection that it makes itself. Messages are dropped while there is
// no connection, because the engine says again what matters. I/O thread only, but for start()
// before it runs; outlives the run of its io_context.
class GroupLink final : public net::StoreLink {
 public:
  GroupLink(boost::asio::io_context& io, LocalProcess& local, PeerAddress peer, LinkEvents& events);

  void send(const members::ProcessId& from, const members::GroupMessage& message);

 private:
  void connected(const wire::Welcome& welcome) override;
  // No message is accepted.
  std::optional<net::Failure> received(net::Frame) override { return std::nullopt; }
  void failed(const net::Failure& failure, LogLevel level, bool was_connected) override;
  void disconnected() override { outgoing_.clear(); }

  LinkEvents& events_;
  LogLimiter limiter_;
};

}  // namespace dpwa::group
