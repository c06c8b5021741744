#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "dpwa/net/stream.h"

namespace dpwa {
class Security;
}

namespace dpwa::net {

// Makes a connection that came in ready for frames: the TLS handshake, or nothing when `security`
// is null. A caller of the other kind is told at once: one without TLS by a REJECT, one with TLS,
// where there is none, by an alert. A failure says what is wrong with the caller, who has been told
// then; finish() gives it the time to hear it. One without words: it left without a byte. Deadlines
// are the caller's of this.
boost::asio::awaitable<std::optional<Failure>> secure_inbound(Stream& stream,
                                                              const Security* security);

}  // namespace dpwa::net
