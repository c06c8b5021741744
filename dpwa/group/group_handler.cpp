#include "dpwa/group/group_handler.h"

#include "dpwa/snapshot/reused_memory.h"

namespace dpwa::group {

using wire::MessageType;

void Inbox::open(Receive receive) {
  const MutexLock lock(mutex_);
  receive_ = std::move(receive);
}

void Inbox::close() {
  const MutexLock lock(mutex_);
  receive_ = nullptr;
}

bool Inbox::deliver(wire::ViewFrame frame) {
  const MutexLock lock(mutex_);
  if (receive_) receive_(std::move(frame));
  return receive_ != nullptr;
}

std::vector<wire::TypeBound> GroupHandler::requests(const Requester& requester) const {
  if (requester.peer.empty()) return {};
  return {{MessageType::view, wire::max_view_body_bytes}};
}

std::optional<bool> GroupHandler::take_at_once(net::Frame& request, Responder& responder) {
  auto frame = wire::decode_view(request.body);
  const bool of_itself = frame && frame->from.name == responder.requester().peer;
  if (!of_itself) {
    responder.protocol_error(frame ? "VIEW in the name of another process" : frame.error().detail);
    return false;
  }
  // What comes first on a connection must not be lost: the caller makes another one.
  return inbox_->deliver(*std::move(frame));
}

boost::asio::awaitable<bool> GroupHandler::answer(net::Frame request, Responder& responder) {
  co_return take_at_once(request, responder).value_or(false);
}

}  // namespace dpwa::group
