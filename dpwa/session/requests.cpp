#include "dpwa/session/requests.h"

#include <algorithm>

namespace dpwa::session {

std::uint32_t Requests::begin(wire::TypeSet answers) {
  under_way_.push_back({++last_, answers});
  return last_;
}

wire::TypeSet Requests::answers() const {
  wire::TypeSet all;
  for (const Request& request : under_way_) all |= request.answers;
  return all;
}

bool Requests::answered(const wire::FrameHeader& header) {
  const auto request = std::ranges::find(under_way_, header.request_id, &Request::number);
  if (request == under_way_.end() || !request->answers.has(header.type)) return false;
  under_way_.erase(request);
  return true;
}

bool Requests::waits_for(std::uint32_t number) const {
  return std::ranges::find(under_way_, number, &Request::number) != under_way_.end();
}

}  // namespace dpwa::session
