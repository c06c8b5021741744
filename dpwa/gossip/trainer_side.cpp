#include "dpwa/gossip/trainer_side.h"

#include <chrono>

#include "dpwa/config/config.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/model_passes.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "dpwa/net/client.h"
#include "dpwa/net/local_node.h"
#include "dpwa/snapshot/finite.h"

namespace dpwa {

Listing listing_of(const Config& config) {
  if (config.by_seeds) return Listing::by_seeds;
  return config.is_joiner() ? Listing::joins : Listing::listed;
}

NodePlace place_of(const Config& config) {
  return {.name = config.self,
          .position = config.self_index(),
          .file_peers = config.nodes.size() - 1,
          .listing = listing_of(config)};
}

std::vector<PeerAnswer> answers_of(const std::vector<Greeted>& greeted,
                                   const std::vector<Member>& members) {
  std::vector<PeerAnswer> answers(greeted.size());
  for (std::size_t peer = 0; peer < greeted.size(); ++peer) {
    PeerAnswer& answer = answers[peer];
    const wire::Welcome& welcome = greeted[peer].welcome;
    answer.asked = greeted[peer].asked;
    answer.failure = greeted[peer].failure;
    answer.detail = greeted[peer].detail;
    answer.refuses_name = greeted[peer].reject == wire::RejectCode::own_name;
    answer.joining = welcome.state == wire::NodeState::joining;
    answer.finished = welcome.state == wire::NodeState::finished;
    answer.lineage = welcome.lineage;
    answer.clock = welcome.clock;
    answer.name = welcome.node;
    if (peer >= members.size()) continue;
    answer.name = members[peer].claim.name;
    answer.listed = members[peer].listed;
    answer.vouched_for = members[peer].vouched_for();
    answer.status = members[peer].status();
  }
  return answers;
}

Progress TrainerSide::progress() const {
  Progress progress = state.progress();
  progress.time_us = static_cast<std::int64_t>(wall_clock_us());
  return progress;
}

bool TrainerSide::publish_now(bool final) {
  Progress now = progress();
  now.final = final;
  return passes.publish_now(now, std::chrono::steady_clock::now() + config.gossip.timeout * 2);
}

void TrainerSide::report_unless_finite() {
  const auto snapshot = node.local().store.latest();
  if (said_not_finite || snapshot == nullptr) return;
  const ByteRange all{0, parameters.manifest().total_bytes()};
  const TensorSpec* tensor = first_not_finite(parameters.manifest(), snapshot->bytes(), all);
  if (tensor == nullptr) return;
  said_not_finite = true;
  log(LogLevel::warn, "gossip",
      "the model of this node is not finite: tensor '" + tensor->name +
          "' has a NaN or an infinity; other nodes refuse its parameters");
}

std::vector<PeerAnswer> TrainerSide::greet() {
  const auto greeted = node.client().greet_all(config.gossip.timeout);
  return answers_of(greeted, node.local().members->all());
}

std::optional<Arrival> TrainerSide::pull(const RoundSpec& round) {
  Client& client = node.client();
  (void)client.take(Duration::zero());  // what came too late for a wait that a suspension has ended
  return client.begin(spec_of(round)) ? client.take(round.timeout * 2) : std::nullopt;
}

PullSpec TrainerSide::spec_of(const RoundSpec& round) const {
  PullSpec spec{round, std::nullopt, LandingMode::difference};
  const bool by_lerp = round.exchange.blends() && config.gossip.blend == BlendMode::lerp;
  if (round.exchange.whole_model || by_lerp) spec.mode = LandingMode::values;
  if (round.block) spec.range = blocks[*round.block];
  return spec;
}

void log_lines(const std::vector<TrainerLine>& lines) {
  for (const TrainerLine& line : lines) {
    const LogLevel level = line.warning ? LogLevel::warn : LogLevel::info;
    if (line.event) {
      log_event(*line.event, level, "gossip", line.text);
    } else {
      log(level, "gossip", line.text);
    }
  }
}

}  // namespace dpwa
