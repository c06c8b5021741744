#include "dpwa/node/listen.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "dpwa/base/port_holder.h"
#include "dpwa/config/resolve.h"
#include "dpwa/log/log.h"
#include "dpwa/net/status_query.h"

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

}  // namespace

std::uint16_t listen_patiently(Server& server, const NodeEntry& entry, const LocalProcess& local,
                               Duration patience) {
  const auto begun = SteadyClock::now();
  bool told = false;
  while (true) {
    try {
      const std::uint16_t port = server.listen();
      warn_of_strangers(entry, local.security != nullptr);
      return port;
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

std::string bound_at(const NodeEntry& entry) {
  return entry.bind_address.empty() ? entry.bind_host() : entry.bind_address;
}

}  // namespace dpwa
