#pragma once

#include <memory>

#include "adapters/adapter.h"
#include "adapters/common/flat_parameters.h"
#include "dpwa/gossip/gossip.h"

namespace dpwa {

// Gossip averaging behind the adapter interface: the module's flat parameters on one side, the
// torch-free Gossip (dpwa/gossip/gossip.h) on the other.
class GossipAdapter : public Adapter {
 public:
  GossipAdapter(Config config, torch::nn::Module& model);
  ~GossipAdapter() override;

  void start() override;
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override;
  void restore(const ResumeState& state) override;

  Gossip& gossip() { return *gossip_; }

 private:
  enum class Phase { made, running, left };

  bool is_running() const;  // throws std::logic_error before start()

  const Config config_;
  FlatParameters flat_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gossip> gossip_;
  Phase phase_ = Phase::made;
  FinishReport finished_;
};

}  // namespace dpwa
