#include <algorithm>
#include <chrono>
#include <cstdio>

#include "dpwa/gossip/start_up.h"
#include "dpwa/log/log.h"

// What StartUp says: in the log, and where it fails.

namespace dpwa {
namespace {

constexpr auto announce_every = std::chrono::seconds(2);

std::string seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", std::chrono::duration<double>(duration).count());
  return text;
}

}  // namespace

template <typename Which>
std::string StartUp::names_of(const std::vector<Seen>& seen, Which which) {
  std::string names;
  for (const Seen& node : seen) {
    if (node.peer && which(node.view.state))
      names += (names.empty() ? "'" : ", '") + node.name + "'";
  }
  return names;
}

void StartUp::announce_waiting(const std::vector<Seen>& seen) {
  const auto now = std::chrono::steady_clock::now();
  if (now - announced_ < announce_every) return;
  announced_ = now;
  const std::string silent = names_of(seen, is_absent);
  const std::string joining =
      names_of(seen, [](PeerStart state) { return state == PeerStart::joining; });
  const std::string text = !silent.empty()    ? silent
                           : !joining.empty() ? joining + ": no common weights there yet"
                                              : "all to begin with the same weights";
  log(LogLevel::info, "gossip", "waiting for " + text);
}

void StartUp::report_absent(const std::vector<Seen>& seen) const {
  const std::string absent = names_of(seen, [](PeerStart state) { return !answered(state); });
  if (absent.empty()) return;
  const bool alone = std::ranges::none_of(
      seen, [](const Seen& node) { return node.peer && answered(node.view.state); });
  log(LogLevel::warn, "gossip",
      (alone ? "started alone, without " : "started without ") + absent + ", after " +
          seconds(elapsed()));
}

std::string StartUp::shortfall(const std::vector<Seen>& seen) const {
  const auto running = 1 + std::ranges::count_if(seen, [](const Seen& node) {
                         return node.peer && answered(node.view.state);
                       });
  std::string text = "node '" + gossip_.config_.self + "' cannot begin: after " +
                     seconds(elapsed()) + " (gossip.start_wait_ms) ";
  if (static_cast<std::size_t>(running) >= options_.min_nodes)
    return text + "no node has given it weights to begin with";
  text += "it is one of " + std::to_string(running) + " nodes, and gossip.min_nodes asks for " +
          std::to_string(options_.min_nodes);
  const std::string absent = names_of(seen, [](PeerStart state) { return !answered(state); });
  return absent.empty() ? text : text + "; not there: " + absent;
}

}  // namespace dpwa
