#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

namespace dpwa::net {

// Runs `io` until it has nothing left to do; nobody stops it otherwise. A handler that fails is
// lost, for want of memory or by a defect: `on_lost` mends what it has left undone, and the loop
// goes on, because no message of a peer is worth the end of a training. A defect is logged as an
// error, at most once a minute each.
void run_io(boost::asio::io_context& io, const std::function<void()>& on_lost = {});

}  // namespace dpwa::net
