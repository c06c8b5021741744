#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/wire/view_messages.h"

namespace dpwa::group {

// Where the messages of a group go that arrive at the server of this process: to the GroupNode that
// is open, if one is. Any thread.
class Inbox {
 public:
  using Receive = std::function<void(wire::ViewFrame)>;
  void open(Receive receive);
  void close();                         // a call that is under way ends first
  bool deliver(wire::ViewFrame frame);  // false: none is open

 private:
  Mutex mutex_;
  Receive receive_ DPWA_GUARDED_BY(mutex_);
};

// VIEW, from other processes of the group. Rx thread only.
class GroupHandler : public RequestHandler {
 public:
  explicit GroupHandler(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  bool in_numbers() const override { return true; }
  std::optional<bool> take_at_once(net::Frame& request, Responder& responder) override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;

 private:
  const std::shared_ptr<Inbox> inbox_;
};

}  // namespace dpwa::group
