#include "dpwa/node/listen.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

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
std::optional<std::string> holder(const PeerAddress& address, const LocalProcess& local) {
  const auto answers = query_status(local.cluster, {address}, answer_time, local.security.get());
  const auto status = nlohmann::json::parse(answers.front().json, nullptr, /*exceptions=*/false);
  if (!status.is_object() || !status.contains("node") || !status["node"].is_string())
    return std::nullopt;
  return status["node"].get<std::string>();
}

}  // namespace

std::uint16_t listen_patiently(Server& server, const PeerAddress& address,
                               const LocalProcess& local, Duration patience) {
  const auto begun = SteadyClock::now();
  bool told = false;
  while (true) {
    try {
      return server.listen();
    } catch (const std::system_error& error) {
      const Duration elapsed = SteadyClock::now() - begun;
      if (error.code() != std::errc::address_in_use || elapsed >= patience) throw;
      if (elapsed >= std::min<Duration>(ending_time, patience)) {
        if (const auto name = holder(address, local))
          throw std::runtime_error(std::string(error.what()) + " by a process that runs as node '" +
                                   *name + "' of cluster '" + local.cluster + "'");
      }
      if (!told) log(LogLevel::warn, "node", std::string(error.what()) + "; trying again");
      told = true;
    }
    std::this_thread::sleep_for(between_tries);
  }
}

PeerAddress own_address(const NodeEntry& entry) {
  const std::string bound = entry.bind_address.empty() ? entry.bind_host() : entry.bind_address;
  const bool all = bound == "0.0.0.0" || bound == "::";
  return {entry.name, {all ? (bound == "::" ? "::1" : "127.0.0.1") : bound}, entry.port};
}

}  // namespace dpwa
