#include "dpwa/session/requests.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa::session {

std::uint32_t Requests::begin(wire::TypeSet answers) {
  under_way_.push_back({++last_, answers});
  return last_;
}

void Requests::give_up(std::uint32_t number) {
  const auto request = std::ranges::find(under_way_, number, &Request::number);
  DPWA_INVARIANT(request != under_way_.end() && !request->given_up,
                 "a request that is given up is waited for", number);
  request->given_up = true;
}

wire::TypeSet Requests::answers() const {
  wire::TypeSet all;
  for (const Request& request : under_way_) all |= request.answers;
  return all;
}

Requests::Kind Requests::answered(const wire::FrameHeader& header) {
  const auto request = std::ranges::find(under_way_, header.request_id, &Request::number);
  if (request == under_way_.end() || !request->answers.has(header.type)) return Kind::unasked;
  const Kind kind = request->given_up ? Kind::late : Kind::due;
  under_way_.erase(request);
  return kind;
}

bool Requests::waits_for(std::uint32_t number) const {
  const auto request = std::ranges::find(under_way_, number, &Request::number);
  return request != under_way_.end() && !request->given_up;
}

}  // namespace dpwa::session
