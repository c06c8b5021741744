#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/engine/final_average.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/start_up.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/rules/membership.h"
#include "dpwa/world/world.h"
#include "test/world/conduct.h"
#include "test/world/gossip_checks.h"

namespace dpwa::world::testing {

struct GossipOptions {
  // Of the cluster file; a node that it does not name joins. `by_seeds`: there is no list of nodes,
  // and these are the seeds.
  std::vector<std::string> names;
  bool by_seeds = false;
  Duration timeout = std::chrono::milliseconds(100);
  Duration start_wait = std::chrono::seconds(2);
  Duration finish_wait = std::chrono::seconds(2);
  std::uint32_t min_nodes = 1;
  unsigned steps_to_checkpoint = 25;  // 0: none is kept
  MembershipOptions membership;
  TrainerOptions trainer;
  PullEngineOptions pulls;
  double factor = .5;
  bool ledger = true;
  bool fresh_only = true;  // see TrainerState::fresh_for
  // All nodes end after the step under way.
  bool ends = false;
};

// A node of gossip averaging: drives the engines of the real node, all of them, as its threads do,
// from its start to its final average. It trains a model of a few numbers, keeps checkpoints, and
// starts from them.
class GossipMember : public Program {
 public:
  GossipMember(Environment& environment, const GossipOptions& options, GossipChecks& checks,
               Conduct& conduct);

  TimePoint now() const { return environment_.now(); }
  bool trains() const { return state_ == GossipState::training; }
  double clock() const { return trainer_.clock(); }
  std::uint64_t lineage() const { return trainer_.lineage(); }
  std::uint64_t blends() const { return blends_; }
  Model& model() { return model_; }
  const Model& model() const { return model_; }
  PullEngine& engine() { return engine_; }
  const PullEngine& engine() const { return engine_; }
  Membership& members() { return members_; }
  const Progress& published() const { return published_->progress; }
  // The nodes that it holds to run, itself not.
  std::set<std::string> running() const;
  // Says so to a few others, and ends.
  void leave();

 private:
  using Answered = std::function<void(const GossipReply&)>;
  struct Landed {
    std::shared_ptr<const Snapshot> peer;
    std::shared_ptr<const Snapshot> own;  // that it was compared with
  };
  using RoundOver = std::function<void(const Arrival&)>;
  using Greeted = std::function<void(const std::vector<PeerAnswer>&)>;

  bool joins() const { return !options_.by_seeds && position_ == options_.names.size(); }
  NodePlace place() const;
  MemberClaim claim_of(const std::string& name) const;
  Membership make_members() const;
  PullEngine make_engine();
  TrainerState make_trainer();
  void publish(const Progress& progress);

  // --- the network
  void call(const std::string& to, GossipQuery query, Duration timeout, Answered answered);
  void end_call(std::uint64_t id, const GossipReply& reply);
  void serve(const GossipQuery& query);
  void answer(const std::string& to, std::uint64_t process, std::uint64_t id, GossipReply reply);
  GossipReply reply_to(const GossipQuery& query);
  GossipReply snapshot_for(const GossipQuery::Pull& pull, const std::string& from);
  void tick();
  void probe(const std::string& name);
  void exchange_members(const std::string& with);
  void greet(Greeted greeted);
  void visit(Greeted greeted);
  bool is_unmet(const std::string& seed) const;
  void begin_round(const RoundSpec& round, RoundOver over);
  void advance();
  void attempt(const PullEngine::Ask& ask);
  void attempted(const std::string& peer, const GossipReply& reply);
  void hear_others();

  // --- the trainer
  void restore(const Kept& kept);
  void begin();
  void begin_again();
  void end_wait();
  bool perform(const StartUp::Action& action);
  void begin_training();
  void step();
  void end_step();
  void absorb();
  void begin_end();
  void end_next();
  bool perform(const FinalAverage::Action& action);
  void fold(const Model& model, std::size_t count);
  void take_over_at_start(const Arrival& arrival);

  Environment& environment_;
  const GossipOptions& options_;
  GossipChecks& checks_;
  Conduct& conduct_;
  Random random_;
  std::uint64_t incarnation_;
  const std::size_t position_;  // among the names
  PullEngine engine_;
  Membership members_;
  Random members_random_;
  TrainerState trainer_;

  // --- of the network's side
  GossipState state_ = GossipState::joining;
  std::shared_ptr<const Snapshot> published_ = std::make_shared<const Snapshot>();
  TimePoint fresh_until_ = TimePoint::max();
  std::uint64_t last_query_ = 0;
  std::unordered_map<std::uint64_t, Answered> queries_;  // without an answer so far
  std::uint64_t members_version_ = 0;
  std::set<std::string> probed_;
  unsigned ticks_ = 0;
  std::unordered_map<std::string, std::uint64_t> callers_;
  std::map<std::string, std::uint16_t> stated_;  // with `callers_` as processes
  std::map<std::string, GivenWeights, std::less<>> given_;
  std::set<std::string> served_;  // have the final snapshot
  RoundOver round_over_;          // empty: none is under way
  Exchange exchange_;             // of the round
  Landed landed_;

  // --- of the trainer's side
  Model model_;
  bool resumed_ = false;
  Progress kept_;  // of the checkpoint
  std::optional<StartUp> start_;
  TimePoint begun_{};
  std::vector<PeerAnswer> looked_;  // of the last look
  std::uint64_t waits_ = 0;         // of the start; each ends once
  bool waiting_ = false;            // until there is a new caller
  bool new_caller_ = false;         // since the last wait
  std::optional<Arrival> arrival_;
  std::uint64_t steps_ = 0;
  std::uint64_t blends_ = 0;
  std::optional<FinalAverage> average_;
  Model mean_;
  Model read_;
  std::set<std::uint64_t> folded_;
};

}  // namespace dpwa::world::testing
