#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa::test {

// How a node of the virtual cluster treats the others.
enum class Behaviour {
  serving,    // trains and answers
  refusing,   // trains, but nobody can connect to it
  busy,       // trains, but has no capacity for replies
  rejecting,  // trains, but belongs to another cluster
  late,       // trains, but answers just before the deadline
  frozen,     // answers, but its trainer stands still
  silent,     // stopped: accepts connections, does and says nothing
  down,       // does not run: connections are refused
};

struct ClusterOptions {
  std::size_t nodes = 48;
  std::uint64_t seed = 1;
  Duration step = std::chrono::milliseconds(20);  // of training; each one varies by a tenth
  Duration latency = std::chrono::milliseconds(1);
  Duration timeout = std::chrono::milliseconds(500);
  double factor = 0.5;
  std::size_t dimensions = 4;
  StalenessOptions staleness;
  DistancePolicy distance = DistancePolicy::warn;
};

struct Attempt {
  TimePoint at;
  std::size_t node = 0;
  std::size_t peer = 0;
  bool operator==(const Attempt&) const = default;
};

struct RoundRecord {
  TimePoint began;
  TimePoint ended;
  std::size_t node = 0;
  std::size_t peer = 0;  // that answered, with mixed; else the last one tried
  std::size_t attempts = 0;
  std::size_t unchanged = 0;  // of these, answers that the peer has nothing new
  std::size_t stale = 0;      // of these, answers that lagged or stood still
  Outcome outcome = Outcome::skipped;
  bool operator==(const RoundRecord&) const = default;
};

// Nodes that each drive the pull engine and the trainer state of the real node on a virtual clock:
// an event queue stands for threads and sockets. Without gradients: a step blends what has arrived,
// publishes and begins a pull if none is under way. Blends are lerps and pulls begin with the step,
// as under a step budget.
class VirtualCluster {
 public:
  explicit VirtualCluster(ClusterOptions options);

  void run(Duration time);
  void set(std::size_t node, Behaviour behaviour);
  // A new process under the old name: higher incarnation, no memory, no weights until its first
  // pull.
  void restart(std::size_t node);

  TimePoint now() const { return now_; }
  std::size_t size() const { return nodes_.size(); }
  const PeerRecord& record(std::size_t node, std::size_t peer) const;
  const std::vector<double>& parameters(std::size_t node) const { return nodes_[node]->values; }
  const Progress& progress(std::size_t node) const { return nodes_[node]->progress; }
  double consensus_variance() const;  // over the nodes that have weights

  // Everything that happened since the last clear().
  const std::vector<Attempt>& attempts() const { return attempts_; }
  const std::vector<RoundRecord>& rounds() const { return rounds_; }
  void clear();

 private:
  struct Node {
    Node(const std::vector<std::string>& peer_names, const ClusterOptions& options,
         std::uint64_t seed);
    PullEngine engine;
    Random random;  // of the steps and the initial weights
    TrainerState trainer;
    Behaviour behaviour = Behaviour::serving;
    std::uint64_t incarnation = 1;
    std::uint64_t life = 0;  // events of an earlier life are void
    std::vector<double> values;
    Progress progress;  // as published last
    bool pulling = false;
    RoundRecord record;
    std::optional<Arrival> arrival;  // of the last round, until the next step
    std::vector<double> arrived;     // the parameters that came with it
  };
  struct Event {
    TimePoint at;
    std::uint64_t order = 0;  // of scheduling: makes simultaneous events deterministic
    std::size_t node = 0;
    std::uint64_t life = 0;
    std::function<void()> action;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  static bool trains(Behaviour behaviour);
  std::unique_ptr<Node> make_node(std::size_t node, std::uint64_t incarnation) const;
  PeerId peer_id(std::size_t node, std::size_t peer) const;
  void schedule(std::size_t node, TimePoint at, std::function<void()> action);
  void schedule_step(std::size_t node);
  void step(std::size_t node);
  void absorb(Node& node);
  void publish(Node& node);
  void advance(std::size_t node);
  void ask(std::size_t node, const PullEngine::Ask& ask);
  void fails(std::size_t node, PeerFailure failure, TimePoint at, bool late = false);
  void answered(std::size_t node, std::size_t peer, const PullEngine::Ask& ask);
  void land(Node& node, const Node& peer, Answer& answer) const;
  void settle(std::size_t node, const Answer& answer, bool late = false);
  void end_round(std::size_t node, Arrival arrival);

  ClusterOptions options_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<Attempt> attempts_;
  std::vector<RoundRecord> rounds_;
};

}  // namespace dpwa::test
