#include "dpwa/node/endpoint.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/names.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/server.h"
#include "dpwa/node/listen.h"
#include "dpwa/node/status_document.h"
#include "dpwa/security/security.h"

namespace dpwa {

ServerOptions server_options(const Config& config, const NodeEntry& at) {
  ServerOptions options;
  static_cast<ServingOptions&>(options) = config.transport;
  // Where many nodes share a host, they need half of a larger bound.
  ConnectionLimits& limits = options.connections;
  limits.per_address = std::max(limits.per_address, limits.in_all / 2);
  options.bind_address = bound_at(at);
  options.port = at.port;
  return options;
}

namespace {

ServerOptions for_observers(ServerOptions options) {
  options.admits_nodes = false;
  return options;
}

}  // namespace

struct Endpoint::Parts {
  Parts(NodeEntry entry, std::unique_ptr<LocalProcess> process, ServerOptions options,
        OnContact on_contact)
      : at(std::move(entry)),
        local(std::move(process)),
        server(io, *local, std::move(options), std::move(on_contact)) {}

  const NodeEntry at;
  boost::asio::io_context io{1};
  const std::unique_ptr<LocalProcess> local;
  Server server;
  std::thread thread;
  std::uint16_t port = 0;
};

Endpoint::Endpoint(const Config& config, std::uint64_t incarnation)
    : Endpoint(config, config.self_node(),
               std::make_unique<LocalProcess>(config.cluster, config.self, incarnation,
                                              std::vector<std::string>()),
               for_observers(server_options(config, config.self_node()))) {
  server().add(std::make_unique<StatusHandler>([this]() -> boost::asio::awaitable<std::string> {
    co_return status_document(local(), {{"clock", nullptr}, {"loss", nullptr}});
  }));
}

Endpoint::Endpoint(const Config& config, NodeEntry at, std::unique_ptr<LocalProcess> local,
                   ServerOptions options, OnContact on_contact)
    : parts_(std::make_unique<Parts>(std::move(at), std::move(local), std::move(options),
                                     std::move(on_contact))) {
  parts_->local->security = make_security(config);
  parts_->local->notes.set("backend", '"' + std::string(config::name_of(config.backend)) + '"');
}

Endpoint::~Endpoint() {
  stop();
}

void Endpoint::listen(Duration patience) {
  parts_->port = listen_patiently(parts_->server, parts_->at, *parts_->local, patience);
}

void Endpoint::run() {
  parts_->server.serve();
  net::run_io(parts_->io);
}

void Endpoint::start(Duration patience) {
  listen(patience);
  parts_->thread = start_background_thread([this] {
    name_thread("dpwa-rx");
    run();
  });
}

void Endpoint::stop() {
  if (!parts_->thread.joinable()) return;
  boost::asio::post(parts_->io, [this] { parts_->server.stop(); });
  parts_->thread.join();
}

void Endpoint::reload_security() {
  const auto& security = parts_->local->security;
  if (!security) return;
  try {
    if (const auto why = security->reload()) {
      log(LogLevel::error, "config", "the keys stay as they were: " + *why);
    } else {
      log(LogLevel::info, "config", "reloaded: the files of the security section");
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::error, "config", "the keys stay as they were: out of memory");
  }
}

std::uint16_t Endpoint::port() const {
  return parts_->port;
}
LocalProcess& Endpoint::local() {
  return *parts_->local;
}
Server& Endpoint::server() {
  return parts_->server;
}
boost::asio::io_context& Endpoint::io() {
  return parts_->io;
}

}  // namespace dpwa
