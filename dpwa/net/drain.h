#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include "dpwa/base/time.h"

namespace dpwa::net {

// Closes the sessions, those that are `busy` after this time; the owner of the timer may cancel it
// once none is left. The sessions outlive what the timer runs.
template <class Sessions, class Busy>
void drain(const Sessions& sessions, boost::asio::steady_timer& timer, Duration time, Busy busy) {
  bool draining = false;
  for (const auto& session : sessions) {
    if (busy(*session)) {
      draining = true;
    } else {
      session->close();
    }
  }
  if (!draining) return;
  timer.expires_after(time);
  timer.async_wait([&sessions](const boost::system::error_code&) {
    for (const auto& session : sessions) session->close();
  });
}

}  // namespace dpwa::net
