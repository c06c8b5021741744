#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/mutex.h"
#include "dpwa/base/random.h"
#include "dpwa/config/config.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/gossip/publisher.h"
#include "dpwa/log/log_limiter.h"
#include "dpwa/node/node.h"
#include "dpwa/rules/alone_watch.h"
#include "dpwa/rules/lineage.h"
#include "dpwa/rules/step_interval.h"
#include "dpwa/snapshot/byte_range.h"
#include "interpolation/guarded.h"

namespace dpwa {

// The trainer's side of gossip averaging: when to publish, pull and blend, and with which factor.
// Free of torch; used by the gossip adapter and by programs that average plain memory. One
// (trainer) thread.
//
// With a step budget of 0 a pull that misses the end of its step is blended at
// the beginning of a later one, before that step's publish. At most one blend a step, at most one
// pull outstanding.
class Gossip : public GossipSession {
 public:
  // `parameters` must outlive it. Throws ConfigError for an interpolation that does not exist, and
  // for more blocks than the model can be cut into. `now`: what its judgement of peers goes by.
  Gossip(const Config& config, Parameters& parameters,
         TimeSource now = std::chrono::steady_clock::now);
  ~Gossip() override;

  void restore(const GossipState& state) override;
  GossipState resume_state() const override;
  void start() override { start_after(Duration::zero()); }
  void start_after(Duration waited);  // so long has the trainer waited for this process already
  void update_send(const std::function<double()>& loss) override;
  StepReport update_wait(const std::function<double()>& loss = {}) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;

  // For a back end that takes turns with this one, between two steps. rest(): it changes the
  // parameters from here on; peers are given none of them to blend. resume(): they are published as
  // they are now, at this clock, and updates may follow; what a peer sent before counts no more.
  void rest();
  void resume(double clock);
  void set_lineage(std::uint64_t lineage);  // while at rest: of the weights that it left here

  Node& node() { return *node_; }

  // Parts of update_send, for tests that need a fixed order among nodes.
  void publish(const std::function<double()>& loss);
  void begin_pull();

 private:
  friend class StartUp;
  friend class FinalAverage;

  void send(const std::function<double()>& loss);  // what publish() does with its open buffer
  void complete_publish();       // swaps a snapshot in once its copy is complete; begins the pull
  bool publish_now(bool final);  // waits for the copy and for a free buffer
  std::optional<Arrival> await_arrival();  // within the step budget
  // Of peers that were asked for parameters to blend: whether to take over the weights of one.
  void hear(const std::vector<OtherLineage>& others);
  void report_other_lineage(const std::string& peer, const std::string& consequence);
  // Into the report of this step, blending when it is to be. `loss`: of now; none: the last known.
  void absorb(Arrival arrival, const std::function<double()>& loss = {});
  void blend(const Arrival& arrival, const std::function<double()>& loss);
  void watch_alone(const Arrival& arrival);
  void note_lineage(const std::string& name, std::uint64_t lineage, double clock);
  // Whether to take over the weights of `name`, which has this progress.
  bool yields_to(const std::string& name, const Progress& progress);
  void take_over(const Arrival& arrival);  // of another lineage, while training
  double share_of(unsigned block) const;
  // Of the clock, whatever gossip.seed is: weights of two runs must never pass for one descent.
  std::uint64_t new_lineage() const;   // never 0
  void adopt(const Arrival& arrival);  // takes over the peer's weights, clock and lineage
  void reload_security();
  std::set<std::string> served_final();  // peers that hold our final snapshot
  Progress progress() const;             // of now, but for version and loss

  Config config_;                  // its nodes stay those of the start: places go by them
  std::vector<NodeEntry> listed_;  // by the file as it was read last
  Parameters& parameters_;
  const TimeSource now_;
  GuardedInterpolation interpolation_;
  const std::vector<ByteRange> blocks_;  // what the pulls ask for in turn; one: the whole
  Random random_;
  unsigned next_block_;
  std::unique_ptr<Node> node_;
  std::optional<Publisher> publisher_;  // from start() on

  StepInterval step_interval_;
  double clock_ = 0;
  std::uint64_t lineage_ = 0;
  std::uint64_t incarnation_ = 0;
  bool resumed_ = false;
  bool pull_wanted_ = false;          // begin a pull once the publish is complete
  std::optional<PeerId> adopt_from_;  // the next pull takes this peer's weights in full

  // What nodes of the file said of their lineage last, by name.
  std::map<std::string, LineageReport, std::less<>> lineages_;
  TakeoverLimit takeovers_;
  std::optional<TimePoint> other_lineage_;  // since when another one has been heard of

  StepReport report_;     // of the step under way
  bool blended_ = false;  // in the step under way
  std::uint64_t pulls_ok_ = 0;
  std::uint64_t pulls_failed_ = 0;
  std::uint64_t factor_fallbacks_ = 0;
  AloneWatch alone_;
  std::optional<Outcome> alone_outcome_;  // of the last pull, while no peer answers
  LogLimiter log_limiter_;

  Mutex served_mutex_;
  std::set<std::string> served_final_ DPWA_GUARDED_BY(served_mutex_);
  // When a node of the file last had our weights in full, and of which lineage they were.
  struct Given {
    TimePoint at{};
    std::uint64_t lineage = 0;
  };
  std::map<std::string, Given, std::less<>> given_ DPWA_GUARDED_BY(served_mutex_);
};

}  // namespace dpwa
