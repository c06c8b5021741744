#include "dpwa/node/endpoint.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/gpu_load.h"
#include "dpwa/base/port_holder.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/names.h"
#include "dpwa/config/resolve.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/server.h"
#include "dpwa/net/status_query.h"
#include "dpwa/node/observe_port.h"
#include "dpwa/node/status_document.h"
#include "dpwa/node/trace_handler.h"
#include "dpwa/security/security.h"

namespace dpwa {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto between_tries = std::chrono::milliseconds(100);
constexpr auto answer_time = std::chrono::milliseconds(500);
// A node that is about to end still answers for a moment.
constexpr auto ending_time = std::chrono::seconds(1);

// The name of the node of this cluster that answers at `address`; none: no such node answers.
std::optional<std::string> node_at(const PeerAddress& address, const LocalProcess& local) {
  const auto answers = query_status(local.cluster, {address}, answer_time, local.security.get());
  const auto status = nlohmann::json::parse(answers.front().json, nullptr, /*exceptions=*/false);
  if (!status.is_object() || !status.contains("node") || !status["node"].is_string())
    return std::nullopt;
  return status["node"].get<std::string>();
}

// The address, numeric, at which a process listens as `entry` says.
std::string bound_at(const NodeEntry& entry) {
  return entry.bind_address.empty() ? entry.bind_host() : entry.bind_address;
}

// Where a process that listens as `entry` says can itself be asked whether it runs already.
PeerAddress own_address(const NodeEntry& entry) {
  const std::string bound = bound_at(entry);
  const bool all = bound == "0.0.0.0" || bound == "::";
  return {entry.name, {all ? (bound == "::" ? "::1" : "127.0.0.1") : bound}, entry.port};
}

// " by process 812 (dpwa-train)", which has the address of `entry`; empty: the system does not
// tell.
std::string held_by(const NodeEntry& entry) {
  const std::string process = port_holder(bound_at(entry), entry.port);
  return process.empty() ? "" : " by " + process;
}

void warn_of_strangers(const NodeEntry& entry, bool is_secured) {
  if (is_secured || config::is_loopback(bound_at(entry))) return;
  log(LogLevel::warn, "node",
      "listens on " + bound_at(entry) + " port " + std::to_string(entry.port) +
          " unencrypted, and takes every caller for a member (security.mode: insecure): for a "
          "private network only; elsewhere security: {mode: psk, key_file: FILE}");
}

ServerOptions for_observers(ServerOptions options) {
  options.admits_nodes = false;
  return options;
}

}  // namespace

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
  std::unique_ptr<ObservePort> observe;  // null: the file has no port for it
  std::thread thread;
  std::uint16_t port = 0;
};

Endpoint::Endpoint(const Config& config, std::uint64_t incarnation)
    : Endpoint(config, config.self_node(),
               std::make_unique<LocalProcess>(config.cluster, config.self, incarnation,
                                              std::vector<std::string>()),
               for_observers(server_options(config, config.self_node()))) {
  serve_status([this]() -> boost::asio::awaitable<std::string> {
    co_return status_document(local(), {{"clock", nullptr}, {"loss", nullptr}});
  });
}

Endpoint::Endpoint(const Config& config, NodeEntry at, std::unique_ptr<LocalProcess> local,
                   ServerOptions options, OnContact on_contact)
    : parts_(std::make_unique<Parts>(std::move(at), std::move(local), std::move(options),
                                     std::move(on_contact))) {
  if (config.observe.port != 0)
    parts_->observe = std::make_unique<ObservePort>(io(), config, parts_->at, bound_at(parts_->at));
  parts_->local->security = make_security(config);
  parts_->local->notes.set("backend", '"' + std::string(config::name_of(config.backend)) + '"');
}

Endpoint::~Endpoint() {
  stop();
}

void Endpoint::serve_status(std::function<boost::asio::awaitable<std::string>()> describe) {
  if (parts_->observe) parts_->observe->describe_by(describe);
  server().add(std::make_unique<StatusHandler>(std::move(describe)));
  server().add(std::make_unique<TraceHandler>());
  own_gpu_watch();  // begins, so that the first status has its answer
}

void Endpoint::listen(Duration patience) {
  const NodeEntry& entry = parts_->at;
  const LocalProcess& local = *parts_->local;
  const auto begun = SteadyClock::now();
  bool told = false;
  while (true) {
    try {
      parts_->port = parts_->server.listen();
      if (parts_->observe) parts_->observe->listen();
      return warn_of_strangers(entry, local.security != nullptr);
    } catch (const std::system_error& error) {
      const Duration elapsed = SteadyClock::now() - begun;
      if (error.code() != std::errc::address_in_use) throw;
      const std::string what = error.what();
      if (elapsed >= patience) throw std::runtime_error(what + held_by(entry));
      if (elapsed >= std::min<Duration>(ending_time, patience)) {
        if (const auto name = node_at(own_address(entry), local)) {
          const std::string by = held_by(entry);
          throw std::runtime_error(what + (by.empty() ? " by a process" : by) +
                                   ", which runs as node '" + *name + "' of cluster '" +
                                   local.cluster + "'");
        }
      }
      if (!told) log(LogLevel::warn, "node", what + held_by(entry) + "; trying again");
      told = true;
    }
    std::this_thread::sleep_for(between_tries);
  }
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

void Endpoint::stop_serving() {
  if (parts_->observe) parts_->observe->stop();
  parts_->server.stop();
}

void Endpoint::stop() {
  if (!parts_->thread.joinable()) return;
  boost::asio::post(parts_->io, [this] { stop_serving(); });
  parts_->thread.join();
  log_event(EventKind::ended, LogLevel::info, "node", "ended");
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
