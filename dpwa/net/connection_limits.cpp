#include "dpwa/net/connection_limits.h"

#include <algorithm>
#include <map>
#include <ranges>

namespace dpwa {
namespace {

using Phase = ConnectionFacts::Phase;

template <typename Fits>
std::optional<std::size_t> longest_waiting(std::span<const ConnectionFacts> present, Fits fits) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (fits(i) && (!found || present[i].since < present[*found].since)) found = i;
  }
  return found;
}

std::optional<std::size_t> longest_idle_stranger(std::span<const ConnectionFacts> present,
                                                 const std::string* address) {
  return longest_waiting(present, [&](std::size_t i) {
    return present[i].phase == Phase::idle && !present[i].of_file &&
           (address == nullptr || present[i].address == *address);
  });
}

std::optional<std::size_t> oldest_handshake(std::span<const ConnectionFacts> present,
                                            const std::string& address) {
  return longest_waiting(present, [&](std::size_t i) {
    return present[i].phase == Phase::handshake && present[i].address == address;
  });
}

ConnectionVerdict refused(std::uint32_t bound, const std::string& what) {
  return {false, std::nullopt, "more than " + std::to_string(bound) + " " + what};
}

}  // namespace

ConnectionVerdict examine_connection(std::span<const ConnectionFacts> present,
                                     const std::string& address, const ConnectionLimits& limits) {
  std::map<std::string, std::uint32_t> handshakes;  // by address
  std::uint32_t handshakes_in_all = 0;
  std::uint32_t from_address = 0;
  std::uint32_t in_all = 0;
  for (const ConnectionFacts& connection : present) {
    if (connection.phase == Phase::closing) continue;
    ++in_all;
    if (connection.address == address) ++from_address;
    if (connection.phase != Phase::handshake) continue;
    ++handshakes[connection.address];
    ++handshakes_in_all;
  }
  ConnectionVerdict verdict;
  if (from_address >= limits.per_address) {
    verdict.closes = oldest_handshake(present, address);
    if (!verdict.closes) verdict.closes = longest_idle_stranger(present, &address);
    verdict.reason = "more than " + std::to_string(limits.per_address) +
                     " connections from one address (half of transport.max_connections)";
    verdict.admitted = verdict.closes.has_value();
    return verdict;
  }
  const bool full = in_all >= limits.in_all;
  if (!full && handshakes_in_all < limits.handshakes) return verdict;
  if (handshakes.empty()) {
    verdict = refused(limits.in_all, "connections (transport.max_connections)");
    verdict.closes = longest_idle_stranger(present, nullptr);
    verdict.admitted = verdict.closes.has_value();
    return verdict;
  }
  const std::uint32_t most = std::ranges::max(handshakes | std::views::values);
  verdict.closes = longest_waiting(present, [&](std::size_t i) {
    return present[i].phase == Phase::handshake && handshakes[present[i].address] == most;
  });
  verdict.reason = full ? refused(limits.in_all, "connections (transport.max_connections)").reason
                        : refused(limits.handshakes, "handshakes at once").reason;
  return verdict;
}

ConnectionVerdict examine_introduction(std::span<const ConnectionFacts> present, std::size_t self,
                                       const std::string& peer, const ConnectionLimits& limits) {
  std::uint32_t others = 0;
  for (std::size_t i = 0; i < present.size(); ++i)
    others += i != self && present[i].peer == peer && present[i].phase != Phase::closing ? 1 : 0;
  if (others < limits.per_peer) return {};
  ConnectionVerdict verdict = refused(limits.per_peer, "connections of one peer");
  verdict.closes = longest_waiting(present, [&](std::size_t i) {
    return i != self && present[i].peer == peer && present[i].phase == Phase::idle;
  });
  verdict.admitted = verdict.closes.has_value();
  return verdict;
}

}  // namespace dpwa
