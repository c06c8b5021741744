#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/local_process.h"
#include "dpwa/net/name_guard.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/net/server_options.h"

namespace dpwa {

// The requests that every node serves beside its parameters.

// STATUS_REQUEST: the status document, for every caller.
class StatusHandler : public RequestHandler {
 public:
  using Describe = std::function<boost::asio::awaitable<std::string>()>;
  explicit StatusHandler(Describe describe) : describe_(std::move(describe)) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;

 private:
  const Describe describe_;
};

// MEMBERS: news of the cluster between this node and a peer.
class MembersHandler : public RequestHandler {
 public:
  MembersHandler(LocalProcess& local, NameGuard& guard, OnContact on_contact)
      : local_(local), guard_(guard), on_contact_(std::move(on_contact)) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;

 private:
  LocalProcess& local_;
  NameGuard& guard_;
  const OnContact on_contact_;
};

// Calls itself a node of the cluster file, and does not call from where the file has that node.
bool borrows_name(const Requester& requester, const Members& members);

// Whether the caller may bear its name; if not, the connection ends.
boost::asio::awaitable<bool> bears_its_name(NameGuard& guard, Responder& responder,
                                            std::uint32_t request_id);

}  // namespace dpwa
