#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dpwa::same_host {

// Where a node hands out its snapshots' memory: the text in WELCOME, "BOOT_ID/SOCKET".
struct Offer {
  std::string boot_id;  // of the host since its last start
  std::string socket;   // name of a Unix socket in the abstract namespace, without the leading 0

  bool operator==(const Offer&) const = default;
};

std::string to_text(const Offer& offer);
// None: the text is not an offer, or its names are not valid. Pure.
std::optional<Offer> parse_offer(const std::string& text);
// None: it is not an offer of a process of this host.
std::optional<Offer> offer_of_this_host(const std::string& text);

// The boot of this host. Empty when it is not known: then no memory is offered or used.
const std::string& boot_id();
// A unique socket name that no other process can guess.
std::string unique_socket_name();

// Makes the acceptor listen at such a name, and returns the offer. Empty when the system does not
// allow it, which is logged of `subsystem`; `callers` says in the line who they would have been.
std::string offer_socket(boost::asio::local::stream_protocol::acceptor& acceptor,
                         std::string_view subsystem, const std::string& callers);

// Whether the other end of a connection is on this host, as far as its addresses tell.
bool is_local(const boost::asio::ip::tcp::socket& socket);

}  // namespace dpwa::same_host
