#include "dpwa/net/same_host/offer.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/log/log.h"

namespace dpwa::same_host {
namespace {

constexpr std::size_t max_socket_name = sizeof(sockaddr_un::sun_path) - 1;

bool is_name(const std::string& text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

std::string to_text(const Offer& offer) {
  return offer.boot_id + "/" + offer.socket;
}

std::optional<Offer> parse_offer(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  Offer offer{text.substr(0, slash), text.substr(slash + 1)};
  if (!is_name(offer.boot_id, 64) || !is_name(offer.socket, max_socket_name)) return std::nullopt;
  return offer;
}

std::optional<Offer> offer_of_this_host(const std::string& text) {
  auto offer = parse_offer(text);
  if (offer && offer->boot_id != boot_id()) offer.reset();
  return offer;
}

const std::string& boot_id() {
  static const auto& id = *new std::string([] {
    std::string text;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, text);
    return is_name(text, 64) ? text : std::string();
  }());
  return id;
}

std::string unique_socket_name() {
  std::random_device random;
  std::string name = "dpwa-" + std::to_string(::getpid()) + "-";
  for (int word = 0; word < 4; ++word) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", random());
    name += text;
  }
  return name;
}

std::string offer_socket(boost::asio::local::stream_protocol::acceptor& acceptor,
                         std::string_view subsystem, const std::string& callers) {
  const Offer offer{boot_id(), unique_socket_name()};
  if (offer.boot_id.empty()) return {};
  try {
    FileDescriptor listener = ipc::listen_at(offer.socket);
    acceptor.assign(boost::asio::local::stream_protocol(), listener.get());
    listener.release();
  } catch (const std::runtime_error& error) {
    log(LogLevel::debug, subsystem,
        "no Unix socket for " + callers + " of this host: " + error.what());
    return {};
  }
  return to_text(offer);
}

bool is_local(const boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return false;
  const auto here = socket.local_endpoint(error);
  return !error && (remote.address().is_loopback() || remote.address() == here.address());
}

}  // namespace dpwa::same_host
