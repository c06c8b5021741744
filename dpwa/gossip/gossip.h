#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/core/random.h"
#include "dpwa/core/step_interval.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/gossip/publisher.h"
#include "dpwa/log/log_limiter.h"
#include "dpwa/node/node.h"
#include "dpwa/snapshot/blocks.h"
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
  // `parameters` must outlive it. Throws ConfigError for an interpolation that does not exist.
  Gossip(const Config& config, Parameters& parameters);
  ~Gossip() override;

  void restore(const ResumeState& state) override;
  ResumeState resume_state() const override;
  void start() override;
  void update_send(const std::function<double()>& loss) override;
  StepReport update_wait() override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;

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
  void report_other_lineage();
  void absorb(Arrival arrival);  // into the report of this step, blending when it is to be
  void blend(const Arrival& arrival);
  double share_of(unsigned block) const;
  void adopt(const Arrival& arrival);  // takes over the peer's weights, clock and lineage
  void reload_security();
  Progress progress() const;  // of now, but for version and loss

  Config config_;                  // its nodes stay those of the start: places go by them
  std::vector<NodeEntry> listed_;  // by the file as it was read last
  Parameters& parameters_;
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

  StepReport report_;     // of the step under way
  bool blended_ = false;  // in the step under way
  std::uint64_t pulls_ok_ = 0;
  std::uint64_t pulls_failed_ = 0;
  std::uint64_t factor_fallbacks_ = 0;
  LogLimiter log_limiter_;

  std::mutex served_mutex_;
  std::set<std::string>
      served_final_;  // guarded by served_mutex_: peers that hold our final snapshot
};

}  // namespace dpwa
