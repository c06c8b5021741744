// The start of a node: performs on the trainer thread what StartUp decides.

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "dpwa/config/config.h"
#include "dpwa/engine/start_up.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/gossip/trainer_side.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string text_of(const NodeEntry& place) {
  return place.host + ":" + std::to_string(place.port);
}

// Performs each action, and tells StartUp the result.
class StartDriver {
 public:
  StartDriver(TrainerSide& side, StartUp& start) : side_(side), start_(start) {}

  // Whether the node may begin.
  bool operator()(const StartUp::Visit&) {
    std::vector<PeerAddress> addresses;
    if (side_.config.by_seeds) {
      addresses = side_.node.client().unmet_seeds();
    } else {
      for (const NodeEntry& node : side_.config.join) addresses.push_back(peer_address(node));
    }
    const auto visited = side_.node.client().visit_all(
        addresses, true, std::max<Duration>(side_.config.gossip.timeout, std::chrono::seconds(1)));
    Members& members = *side_.node.local().members;
    for (std::size_t i = 0; i < visited.size(); ++i) {
      if (visited[i].failure || side_.config.by_seeds) continue;
      members.keep(visited[i].welcome.node);
      members.follow(visited[i].welcome.node, addresses[i].host);
    }
    auto answers = answers_of(visited, {});
    if (side_.config.by_seeds)
      for (std::size_t i = 0; i < answers.size(); ++i)
        answers[i].detail.insert(
            0, addresses[i].addresses.front() + ":" + std::to_string(addresses[i].port) + ": ");
    start_.visited(answers, SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Greet&) {
    const auto answers = side_.greet();
    for (const PeerAnswer& answer : answers) {
      const bool counts = answer.listed || side_.config.by_seeds;
      if (answer.asked && !answer.failure && counts && answer.lineage != 0)
        side_.state.lineages().hear(answer.name, {answer.lineage, answer.clock}, answer.listed);
    }
    start_.greeted(answers, SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Publish& publish) {
    side_.state.replace(publish.clock, publish.lineage);
    const bool done = side_.publish_now(false);
    if (done) side_.report_unless_finite();
    start_.published(done);
    return false;
  }
  bool operator()(const StartUp::Pull& pull) {
    const auto arrival = side_.pull(round_with(pull.peer, take_over, pull.timeout));
    const Outcome outcome = arrival ? arrival->outcome : Outcome::timed_out;
    const Progress progress = arrival ? arrival->progress : Progress{};
    TakeOver result = TakeOver::failed;
    if (outcome == Outcome::busy || outcome == Outcome::not_ready) result = TakeOver::busy;
    if (outcome == Outcome::mixed) {
      result = TakeOver::taken;
      side_.parameters.assign(side_.node.client().landing().bytes());
      const double before = side_.state.clock();
      const bool is_older = progress.clock < before;
      side_.state.replace(progress.clock, progress.lineage);
      side_.said_not_finite = false;
      const std::string gives_up = " and gave up its own at clock " + std::to_string(before);
      log(is_older ? LogLevel::warn : LogLevel::info, "gossip",
          "took over the weights of '" + arrival->peer_name + "' at clock " +
              std::to_string(progress.clock) + (is_older ? gives_up : ""));
    }
    start_.pulled(result, progress.clock, progress.lineage, SteadyClock::now());
    return false;
  }
  bool operator()(const StartUp::Measure& measure) {
    RoundSpec round = round_with(measure.peer, compare_only, side_.config.gossip.timeout);
    if (side_.blocks.size() > 1) round.block = measure.block;
    const auto arrival = side_.pull(round);
    const bool compares = arrival && arrival->outcome == Outcome::mixed &&
                          arrival->progress.lineage == side_.state.lineage();
    start_.measured(compares ? std::optional(arrival->stats.squared_distance) : std::nullopt);
    return false;
  }
  bool operator()(const StartUp::Wait& wait) {
    const Duration shortest = std::min<Duration>(wait.time, std::chrono::milliseconds(20));
    std::this_thread::sleep_for(shortest);  // whatever the callers do
    side_.node.client().wait_for_new_caller(wait.time - shortest);
    return false;
  }
  bool operator()(const StartUp::Begin&) { return true; }
  bool operator()(const StartUp::Fail& fail) { throw std::runtime_error(fail.line); }

 private:
  TrainerSide& side_;
  StartUp& start_;
};

}  // namespace

void run_start_up(TrainerSide& side, bool resumed, std::uint64_t new_lineage, TimePoint begun) {
  const Config& config = side.config;
  StartUpOptions options;
  static_cast<NodePlace&>(options) = place_of(config);
  for (const NodeEntry& node : config.join)
    options.join_by += (options.join_by.empty() ? "" : ", ") + text_of(node);
  static_cast<StartOptions&>(options.rule) = config.gossip;
  options.rule.limit = 2 * config.gossip.start_wait + 4 * config.gossip.timeout;
  options.rule.listing = options.listing;
  options.timeout = config.gossip.timeout;
  options.blocks = static_cast<unsigned>(side.blocks.size());
  options.firewall = config.gossip.firewall;
  options.new_lineage = new_lineage;
  options.weights = {side.state.clock(), side.state.lineage(), resumed};
  StartUp start(std::move(options), begun);
  StartDriver driver(side, start);
  bool begins = false;
  while (!begins) {
    if (side.broken_off) throw std::runtime_error("the start was broken off");
    const StartUp::Action action = start.next(SteadyClock::now(), side.random);
    log_lines(start.take_lines());
    begins = std::visit(driver, action);
  }
  side.node.local().state = wire::NodeState::ready;
  log_event(EventKind::started, LogLevel::info, "gossip",
            "ready at clock " + std::to_string(side.state.clock()));
}

}  // namespace dpwa
