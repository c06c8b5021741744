#include "test/dpwa/engine/start_cluster.h"

#include <utility>

#include "test/dpwa/engine/pull_driver.h"

namespace dpwa::test {

StartingCluster::StartingCluster(std::vector<StartingNode> nodes, std::uint64_t seed,
                                 const StartUpOptions& options)
    : nodes_(std::move(nodes)), options_(options), random_(seed) {
  for (StartingNode& node : nodes_) {
    node.action_ends = node.arrives + tick * static_cast<int>(random_.below(poll / tick));
    node.clock = node.resumed_clock.value_or(0);
    node.ready = node.conduct == Conduct::trains;
  }
}

void StartingCluster::run(Duration end) {
  for (; now_ < end; now_ += tick) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) advance(i);
  }
}

std::set<std::uint64_t> StartingCluster::lineages() const {
  std::set<std::uint64_t> found;
  for (const StartingNode& node : nodes_) {
    if (runs(node) && node.conduct == Conduct::honest) found.insert(node.ready ? node.lineage : 0);
  }
  return found;
}

void StartingCluster::begin(std::size_t index) {
  StartingNode& node = nodes_[index];
  StartUpOptions options = options_;
  options.name = "w" + std::to_string(index + 1);
  options.position = index;
  options.file_peers = nodes_.size() - 1;
  options.timeout = std::chrono::milliseconds(500);
  options.new_lineage = 1000 + index;
  options.weights = {node.clock, node.lineage, node.resumed_clock.has_value()};
  node.start.emplace(std::move(options), TimePoint(std::chrono::hours(1)) + node.arrives);
}

void StartingCluster::advance(std::size_t index) {
  StartingNode& node = nodes_[index];
  if (!runs(node) || !node.failure.empty()) return;
  if (node.ready) {
    node.clock += 0.5;  // trains: a step of 20 ms
    node.weights += 0.01 * random_.normal(0, 1);
    return;
  }
  if (node.conduct != Conduct::honest || now_ < node.action_ends) return;
  if (!node.start) begin(index);
  while (!node.ready && node.failure.empty() && now_ >= node.action_ends) {
    if (node.action) end_action(index);
    node.action = node.start->next(time(), random_);
    for (const TrainerLine& line : node.start->take_lines()) lines_.push_back(line.text);
    Duration takes{};
    if (const auto* wait = std::get_if<StartUp::Wait>(&*node.action)) takes = wait->time;
    if (std::holds_alternative<StartUp::Greet>(*node.action)) takes = look;
    if (std::holds_alternative<StartUp::Measure>(*node.action)) takes = pull;
    if (const auto* request = std::get_if<StartUp::Pull>(&*node.action)) {
      const StartingNode& source = nodes_[node_of(index, request->peer)];
      takes = source.conduct == Conduct::gives_nothing ? request->timeout : pull;
    }
    if (std::holds_alternative<StartUp::Begin>(*node.action)) {
      node.ready = true;
      node.began = now_;
      node.began_at_clock = node.clock;
      node.began_with = node.weights;
    }
    if (const auto* fail = std::get_if<StartUp::Fail>(&*node.action)) node.failure = fail->line;
    node.action_ends = now_ + takes;
  }
}

std::vector<PeerAnswer> StartingCluster::answers(std::size_t self) const {
  std::vector<PeerAnswer> result;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == self) continue;
    const StartingNode& node = nodes_[i];
    PeerAnswer answer;
    answer.asked = answer.seed = answer.vouched_for = true;
    answer.name = "w" + std::to_string(i + 1);
    answer.joining = !node.ready;
    answer.clock = node.clock;
    answer.lineage = node.start || node.ready ? node.lineage : 0;
    if (node.conduct == Conduct::gives_nothing) answer.lineage = 1;
    if (!runs(node) || !node.failure.empty()) {
      answer.failure = PeerFailure::unreachable;
    } else if (node.conduct == Conduct::refuses_name) {
      answer.failure = PeerFailure::rejected;
      answer.refuses_name = true;
      answer.detail = "the name is taken";
    }
    result.push_back(std::move(answer));
  }
  return result;
}

void StartingCluster::end_pull(std::size_t index, const StartUp::Pull& request) {
  StartingNode& node = nodes_[index];
  const StartingNode& source = nodes_[node_of(index, request.peer)];
  const bool gives = runs(source) && source.conduct != Conduct::gives_nothing;
  if (gives) {
    node.clock = source.clock;
    node.lineage = source.lineage;
    node.weights = source.weights;
  }
  node.start->pulled(gives ? TakeOver::taken : TakeOver::failed, source.clock, source.lineage,
                     time());
}

void StartingCluster::end_action(std::size_t index) {
  StartingNode& node = nodes_[index];
  const StartUp::Action action = *std::exchange(node.action, std::nullopt);
  if (std::holds_alternative<StartUp::Greet>(action)) {
    node.start->greeted(answers(index), time());
    if (!std::exchange(node.called, true)) end_waits();
  } else if (const auto* publish = std::get_if<StartUp::Publish>(&action)) {
    const bool brings = publish->lineage == 1000 + index && node.lineage != publish->lineage;
    sources_ += brings ? 1 : 0;
    node.clock = publish->clock;
    node.lineage = publish->lineage;
    node.start->published(true);
  } else if (const auto* request = std::get_if<StartUp::Pull>(&action)) {
    end_pull(index, *request);
  } else if (const auto* measure = std::get_if<StartUp::Measure>(&action)) {
    const StartingNode& peer = nodes_[node_of(index, measure->peer)];
    const double difference = peer.weights - node.weights;
    const bool compares = runs(peer) && peer.lineage == node.lineage;
    node.start->measured(compares ? std::optional(difference * difference) : std::nullopt);
  }
}

// A process calls that has not called before.
void StartingCluster::end_waits() {
  for (StartingNode& node : nodes_) {
    if (node.action && std::holds_alternative<StartUp::Wait>(*node.action)) node.action_ends = now_;
  }
}

}  // namespace dpwa::test
