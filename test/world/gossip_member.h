#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/engine/final_average.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/start_up.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/rules/membership.h"
#include "dpwa/world/world.h"
#include "test/world/gossip_checks.h"

namespace dpwa::world::testing {

struct GossipOptions {
  std::vector<std::string> names;         // of the cluster file
  std::string joins;                      // one that the file does not name; empty: none
  std::map<std::string, Duration> steps;  // by name
  Duration timeout = std::chrono::milliseconds(100);
  Duration start_wait = std::chrono::seconds(2);
  Duration finish_wait = std::chrono::seconds(2);
  unsigned steps_to_checkpoint = 25;
  MembershipOptions membership;
  // All nodes end after the step under way.
  bool ends = false;
};

// A node of gossip averaging: drives the engines of the real node, all of them, as its threads do,
// from its start to its final average. It trains a model of a few numbers, keeps checkpoints, and
// starts from them.
class GossipMember : public Program {
 public:
  GossipMember(Environment& environment, const GossipOptions& options, GossipChecks& checks);

  bool trains() const { return state_ == State::training; }
  bool over() const { return over_; }
  double clock() const { return trainer_.clock(); }
  std::uint64_t lineage() const { return trainer_.lineage(); }
  std::uint64_t blends() const { return blends_; }
  // The nodes that it holds to run, itself not.
  std::set<std::string> running() const;

 private:
  enum class State : std::uint8_t { joining, training, finished };
  struct Snapshot {
    Progress progress;
    Model model;
  };
  struct Pull {
    bool full = false;
    bool for_final = false;
    std::uint64_t known_version = 0;
    std::optional<std::uint16_t> taken;
  };
  struct Query {
    std::string from;
    std::uint64_t incarnation = 0;
    std::uint64_t id = 0;
    // At most one of them; neither: a greeting.
    std::optional<Pull> pull;
    std::optional<MemberExchange> members;
  };
  struct Reply {
    std::optional<PeerFailure> failure;
    std::uint64_t incarnation = 0;  // 0: nobody has answered
    bool late = false;
    State state = State::joining;
    Snapshot snapshot;
    MemberExchange members;
  };
  using Answered = std::function<void(const Reply&)>;
  struct Kept {
    Model model;
    double clock = 0;
    std::uint64_t lineage = 0;
    std::uint64_t incarnation = 0;
  };
  struct Landed {
    Model peer;
    Model own;  // that it was compared with
  };
  using RoundOver = std::function<void(const Arrival&)>;
  using Greeted = std::function<void(const std::vector<PeerAnswer>&)>;

  TimePoint now() const { return environment_.now(); }
  bool joins() const { return position_ == options_.names.size(); }
  NodePlace place() const;
  MemberClaim claim_of(const std::string& name) const;
  std::vector<MemberClaim> others() const;
  PullEngine make_engine();
  TrainerState make_trainer();
  void publish(const Progress& progress);

  // --- the network
  void call(const std::string& to, Query query, Duration timeout, Answered answered);
  void serve(const Query& query);
  Reply reply_to(const Query& query);
  Reply snapshot_for(const Pull& pull, const std::string& from);
  void tick();
  void probe(const std::string& name);
  void exchange_members(const std::string& with);
  void greet(Greeted greeted);
  void visit(Greeted greeted);
  void begin_round(const RoundSpec& round, RoundOver over);
  void advance();
  void attempt(const PullEngine::Ask& ask);
  void attempted(const std::string& peer, const Reply& reply);
  void hear_others();

  // --- the trainer
  void restore(const Kept& kept);
  void begin();
  void begin_again();
  bool perform(const StartUp::Action& action);
  void step();
  void end_step();
  void absorb();
  void begin_end();
  void end_next();
  bool perform(const FinalAverage::Action& action);
  void fold(const Model& model, std::size_t count);
  void take_over_at_start(const Arrival& arrival);
  void leave();

  Environment& environment_;
  const GossipOptions& options_;
  GossipChecks& checks_;
  Random random_;
  std::uint64_t incarnation_;
  std::size_t position_ = 0;  // among the names
  PullEngine engine_;
  Membership members_;
  Random members_random_;
  TrainerState trainer_;

  // --- of the network's side
  State state_ = State::joining;
  Snapshot published_;
  TimePoint fresh_until_ = TimePoint::max();
  std::uint64_t last_query_ = 0;
  std::map<std::uint64_t, Answered> queries_;  // without an answer so far
  std::uint64_t members_version_ = 0;
  std::set<std::string> probed_;
  std::map<std::string, std::uint64_t> callers_;
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
  bool waiting_ = false;
  std::optional<Arrival> arrival_;
  std::uint64_t steps_ = 0;
  std::uint64_t blends_ = 0;
  std::optional<FinalAverage> average_;
  Model mean_;
  Model read_;
  std::set<std::uint64_t> folded_;
  bool over_ = false;
};

}  // namespace dpwa::world::testing
