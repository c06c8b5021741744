#include <algorithm>
#include <chrono>

#include "dpwa/engine/start_up.h"

// The texts of StartUp: for the log, and for failures.

namespace dpwa {
namespace {

constexpr auto announce_every = std::chrono::seconds(2);

}  // namespace

template <typename Which>
std::string StartUp::names_of(const std::vector<Seen>& seen, Which which) {
  std::string names;
  for (const Seen& node : seen) {
    if (node.peer && which(node.view.state)) add_name(names, node.name);
  }
  return names;
}

void StartUp::warn_of_many() {
  const std::size_t nodes = options_.file_peers + 1;
  if (nodes < many_nodes) return;
  lines_.push_back({true, "the start and the final average greet all " + std::to_string(nodes) +
                              " nodes of the file, which takes a long time"});
}

void StartUp::announce_waiting(TimePoint now) {
  if (now - *announced_ < announce_every) return;
  announced_ = now;
  const std::string silent = names_of(seen_, is_absent);
  const std::string joining =
      names_of(seen_, [](PeerStart state) { return state == PeerStart::joining; });
  const std::string text = !silent.empty()    ? silent
                           : !joining.empty() ? joining + " to take over the common weights"
                           : is_alone()       ? "other nodes, by " + options_.join_by
                                              : "all to begin with the same weights";
  lines_.push_back({false, "waiting for " + text});
}

void StartUp::report_absent(TimePoint now) {
  const std::string absent = names_of(seen_, [](PeerStart state) { return !answered(state); });
  if (is_alone())
    lines_.push_back({true, "found no other node by " + options_.join_by + " in " +
                                seconds(elapsed(now)) + ": begins alone"});
  if (absent.empty()) return;
  const bool alone = std::ranges::none_of(
      seen_, [](const Seen& node) { return node.peer && answered(node.view.state); });
  lines_.push_back({true, (alone ? "started alone, without " : "started without ") + absent +
                              ", after " + seconds(elapsed(now))});
}

std::string StartUp::shortfall(TimePoint now) const {
  const auto running = 1 + std::ranges::count_if(seen_, [](const Seen& node) {
                         return node.peer && answered(node.view.state);
                       });
  std::string text = "node '" + options_.name + "' cannot begin: after " + seconds(elapsed(now)) +
                     " (gossip.start_wait_ms) ";
  if (static_cast<std::size_t>(running) >= options_.rule.min_nodes)
    return text + "no node has given it weights to begin with";
  text += (running == 1 ? std::string("no other node runs")
                        : "only " + std::to_string(running) + " nodes run, this one included") +
          ", and gossip.min_nodes requires " + std::to_string(options_.rule.min_nodes);
  const std::string absent = names_of(seen_, [](PeerStart state) { return !answered(state); });
  return absent.empty() ? text : text + "; no answer from " + absent;
}

}  // namespace dpwa
