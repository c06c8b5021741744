#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

namespace dpwa::net {

// Runs `io` until it is stopped or has nothing left to do. Where memory is refused to a handler,
// that handler is lost: `on_refused` mends what it has left undone, and the loop goes on. Any other
// exception is a defect and passes through.
void run_io(boost::asio::io_context& io, const std::function<void()>& on_refused = {});

}  // namespace dpwa::net
