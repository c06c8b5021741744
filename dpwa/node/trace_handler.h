#pragma once

#include <boost/asio/awaitable.hpp>
#include <vector>

#include "dpwa/net/request_handler.h"

namespace dpwa {

// TRACE_REQUEST: the trace of the process, for every caller.
class TraceHandler : public RequestHandler {
 public:
  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;
};

}  // namespace dpwa
