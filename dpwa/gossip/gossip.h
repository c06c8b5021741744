#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/gossip/model_passes.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/lineage.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa {

class GossipNode;
class RequestHandler;
struct TrainerSide;

// The trainer's side of gossip averaging: owns the node and the passes over the parameters, and
// does what TrainerState, StartUp and FinalAverage (dpwa/engine) decide. Free of torch; used by the
// gossip adapter and by programs that average plain memory. One (trainer) thread.
//
// With a step budget of 0, a pull that misses the end of its step is blended at the beginning of a
// later step, before that step publishes; so is one whose bytes are not on the device of the
// parameters by then. At most one blend per step, at most one pull outstanding.
class Gossip : public GossipSession {
 public:
  // `parameters` must outlive it. Throws ConfigError for an interpolation that does not exist, and
  // for more blocks than the model can be cut into. `now`: the clock for its judgement of peers.
  Gossip(const Config& config, Parameters& parameters,
         TimeSource now = std::chrono::steady_clock::now);
  ~Gossip() override;

  void restore(const GossipState& state) override;
  GossipState resume_state() const override;
  void start() override { start_after(Duration::zero()); }
  void start_after(Duration waited);  // how long the trainer has already waited for this process
  void update_send(const std::function<double()>& loss) override;
  StepReport update_wait(const std::function<double()>& loss = {}) override;
  // After update_send(): this step has its blend, so that update_wait() will only report.
  bool has_blended() const { return state_.blended(); }
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  void show(const std::string& name, double value) override;
  // Ends the wait of a start or of a final average soon, with a std::runtime_error. Any thread.
  void break_off() override { broken_off_ = true; }

  // For a back end that takes turns with this one, between two steps. After rest() that back end
  // changes the parameters, and peers get none of them to blend. resume() publishes the parameters
  // as they are now, at this clock, and updates may follow; parameters that a peer sent before no
  // longer count.
  void rest();
  void resume(double clock);
  void set_lineage(std::uint64_t lineage);  // while at rest: of the weights that it left here

  // Requests that the node answers besides: before start().
  void serve_also(std::unique_ptr<RequestHandler> handler);
  GossipNode& node() { return *node_; }

  // Parts of update_send, for tests that need a fixed order among nodes.
  void publish(const std::function<double()>& loss);
  void begin_pull();

 private:
  void send(const std::function<double()>& loss);  // what publish() does with its open buffer
  void complete_publish();  // swaps snapshots in whose copies are complete; begins the pull
  bool may_pull();
  void complete_copy();  // the first half of that
  // What has landed, or lands within `patience`, once a blend of it holds nothing up.
  std::optional<Arrival> take_arrival(Duration patience);
  std::optional<Arrival> await_arrival(Duration& waited);  // within the step budget
  // Blends the arrival if it should be, and reports it. `loss`: of now; none: the last known.
  void absorb(const Arrival& arrival, const std::function<double()>& loss = {});
  Surroundings surroundings();
  void log_state();
  // From the clock, whatever gossip.seed is: the weights of two runs must never have one lineage.
  std::uint64_t new_lineage() const;  // never 0
  TrainerSide side();

  Config config_;                  // its nodes stay those of the start, which fix the places
  std::vector<NodeEntry> listed_;  // the nodes of the file as it was read last
  Parameters& parameters_;
  const TimeSource now_;
  const std::vector<ByteRange> blocks_;  // that pulls ask for in turn; one: the whole model
  Random random_;
  TrainerState state_;
  std::vector<std::unique_ptr<RequestHandler>> handlers_;  // for the node
  std::unique_ptr<GossipNode> node_;
  std::optional<ModelPasses> passes_;  // from start() on
  std::uint64_t incarnation_ = 0;
  bool resumed_ = false;
  bool said_not_finite_ = false;
  std::atomic<bool> broken_off_ = false;
  std::optional<std::uint64_t> pull_wanted_;  // begin a pull once more than that are published
  std::optional<Arrival> fetching_;           // has landed, and is on its way to the parameters
  LogLimiter log_limiter_;
  std::map<std::string, GivenWeights, std::less<>> given_;  // Surroundings::given
};

}  // namespace dpwa
