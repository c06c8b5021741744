#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/collective/host_replica.h"
#include "dpwa/collective/replica.h"
#include "python/core/trainer.h"

namespace dpwa::python {

// Back end collective, without c10d. The gradients, and the optimizer, are asked for during its
// calls, on the thread that makes the call.
class CollectiveTrainer final : public Trainer {
 public:
  // `trained`: by tensor. `threads`: as of make_gossip_trainer(). Throws ConfigError for what this
  // package lacks of the back end.
  CollectiveTrainer(const Config& config, std::vector<TensorSpec> tensors,
                    const std::vector<bool>& trained, unsigned threads);
  ~CollectiveTrainer() override;

  // Before start().
  void set_source(std::unique_ptr<collective::GradientSource> source, std::function<void()> settle);
  collective::GradientSource& source();
  void settle() override;

  collective::HostReplica& replica();

  void mark(const std::string& what, const std::string& value) override;
  void require_same(const std::string& what, const std::string& value) override;
  void restore(const ResumeState& state) override;
  void start() override;
  Place place() const override;
  void update_send(double loss) override;
  StepReport update_wait(std::optional<double> loss) override;
  ResumeState resume_state() const override;
  void show(const std::string& name, double value) override;
  void reload(const Config& fresh) override;
  FinishReport finish() override;
  void leave() override;
  void break_off() override;

  // Before start(). `program` outlives it.
  void share(const std::string& form, std::span<std::byte> program);
  void average_gradients();
  // As of CollectiveNode.
  StepReport make_step(collective::OptimizerState& optimizer, const std::function<void()>& update,
                       double loss, bool skips);
  bool should_stop(bool wanted);

 private:
  struct Own;
  Own& own() const;

  std::unique_ptr<Own> own_;
};

}  // namespace dpwa::python
