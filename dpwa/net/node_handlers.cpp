#include "dpwa/net/node_handlers.h"

#include <utility>

#include "dpwa/wire/messages.h"

namespace dpwa {

namespace asio = boost::asio;
using wire::MessageType;

std::vector<wire::TypeBound> StatusHandler::requests(const Requester&) const {
  return {{MessageType::status_request, wire::max_body_bytes(MessageType::status_request)}};
}

asio::awaitable<bool> StatusHandler::answer(net::Frame request, Responder& responder) {
  wire::Status status;
  status.json = co_await describe_();
  auto frame = wire::encode(status, request.header.request_id);
  co_return co_await responder.send(std::move(frame));
}

bool borrows_name(const Requester& requester, const Members& members) {
  return !requester.account.is_known && members.is_listed(requester.peer);
}

asio::awaitable<bool> bears_its_name(NameGuard& guard, Responder& responder,
                                     std::uint32_t request_id) {
  const Requester& requester = responder.requester();
  std::string name = requester.peer;
  const auto verdict =
      co_await guard.examine(std::move(name), requester.incarnation, requester.network);
  if (verdict.admitted) co_return true;
  if (verdict.refusal.empty()) co_return false;
  wire::Reject reject{wire::RejectCode::own_name, verdict.refusal};
  co_return co_await responder.refuse(std::move(reject), request_id);
}

std::vector<wire::TypeBound> MembersHandler::requests(const Requester& requester) const {
  if (!local_.members->exchanges() || requester.peer.empty() || !requester.moves_parameters)
    return {};
  return {{MessageType::members, wire::max_body_bytes(MessageType::members)}};
}

asio::awaitable<bool> MembersHandler::answer(net::Frame request, Responder& responder) {
  const Requester& requester = responder.requester();
  auto exchange = wire::decode_members(request.body);
  const bool of_itself = exchange && exchange->claims[0].name == requester.peer &&
                         exchange->claims[0].incarnation == requester.incarnation;
  if (!of_itself) {
    responder.protocol_error(exchange ? "MEMBERS that does not begin with its sender"
                                      : exchange.error().detail);
    co_return false;
  }
  const std::uint32_t request_id = request.header.request_id;
  const bool admitted = co_await bears_its_name(guard_, responder, request_id);
  if (!admitted) co_return false;
  Members& members = *local_.members;
  // Any caller may borrow the name of a node of the file. Its claim that the node has left is not
  // believed from another address; if it is true, the peers find out.
  MemberClaim& itself = exchange->claims[0];
  if (borrows_name(requester, members) && itself.status == MemberStatus::left)
    itself.status = MemberStatus::alive;
  members.merge(requester.peer, requester.incarnation, *exchange, requester.address);
  on_contact_(requester.peer, requester.incarnation);
  const MemberExchange told = members.answer(requester.peer, *exchange);
  auto frame = wire::encode(told, request_id);
  co_return co_await responder.send(std::move(frame));
}

}  // namespace dpwa
