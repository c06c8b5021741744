#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "adapters/adapter.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/common/loss_reader.h"
#include "adapters/gossip/missing_steps.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {

// Gossip averaging behind the adapter interface: the module's flat parameters on one side, the
// torch-free GossipSession (dpwa/gossip/gossip_session.h) on the other: in this process, or with
// gossip.daemon attached to a node process.
class GossipAdapter : public Adapter {
 public:
  GossipAdapter(Config config, torch::nn::Module& model);
  ~GossipAdapter() override;

  void start() override;
  Place place() const override { return place_in_file(config_); }
  void require_same(const std::string& what, const std::string& value) override;
  void mark_model(const std::string& what, const std::string& value) override;
  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override;
  void update_send(const torch::Tensor& loss) override;
  StepReport update_wait(const torch::Tensor& loss) override;
  void show(const std::string& name, double value) override { session().show(name, value); }
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  ResumeState resume_state() const override;
  void restore(const ResumeState& state) override;

  Gossip& gossip();  // of this process; throws std::bad_cast with gossip.daemon

 private:
  enum class Phase { made, running, left };

  AlignedBuffer allocate(std::size_t bytes);  // of host memory for the parameters
  void make_session();                        // over the parameters, with their marks
  GossipSession& session() const;             // throws std::logic_error where there is none
  bool is_running() const { return phase_ == Phase::running; }

  const Config config_;
  const torch::nn::Module& model_;
  std::shared_ptr<MemoryFile> shared_;  // of parameters in host memory, with gossip.daemon
  FlatParameters flat_;
  LossReader losses_;
  std::unique_ptr<Parameters> parameters_;       // null: the node process makes the passes
  std::unique_ptr<GossipSession> gossip_;        // null once there was no memory to make it anew
  std::map<std::string, std::string> settings_;  // of require_same()
  bool marked_ = false;                          // since gossip_ was made
  std::optional<GossipState> restored_;
  std::optional<MissingSteps> missing_steps_;  // while it is running
  Phase phase_ = Phase::made;
  FinishReport finished_;
  torch::Tensor sent_loss_;  // to update_send, until update_wait
};

}  // namespace dpwa
