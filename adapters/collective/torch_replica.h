#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/collective/gradient_reducer.h"
#include "adapters/common/flat_parameters.h"
#include "adapters/torch_types.h"
#include "dpwa/collective/replica.h"
#include "dpwa/config/config.h"

namespace dpwa::collective {

// A model of LibTorch in the groups that its node enters one after the other; these are
// ProcessGroups. One (training) thread.
class TorchReplica final : public Replica {
 public:
  // The model outlives it.
  TorchReplica(const CollectiveConfig& config, torch::nn::Module& model, const FlatParameters& flat)
      : options_(config), model_(model), flat_(flat) {}

  // Samples in the batch whose backward pass comes next; 1 until the first call.
  void set_samples(double samples);
  // While on, backward() sends nothing.
  void set_accumulating(bool on);

  std::vector<Signature::Entry> tensors() const override;
  void check() const override { flat_.check(); }
  bool is_on_host() const override { return flat_.device().is_cpu(); }
  void broadcast_model(const StepGroup& group, int source) override;
  void average_model(const StepGroup& group, const std::vector<bool>& averaged) override;

  void enter(const StepGroup& group, WaitWords waits) override;
  void drop() override { reducer_.reset(); }
  bool has_begun() const override { return reducer_ && reducer_->done(); }
  StepResult exchange() override;
  StepResult repeat() override;
  StepResult exchange_joined() override;
  void set_stopping() override { reducer_->set_stopping(); }
  void set_note(std::uint32_t note) override { reducer_->set_note(note); }

 private:
  StepResult end_exchange();

  const GradientOptions options_;
  torch::nn::Module& model_;
  const FlatParameters& flat_;
  std::unique_ptr<GradientReducer> reducer_;  // null: in no group
  double samples_ = 1;
  bool accumulating_ = false;
  std::vector<bool> used_;  // in the step under way: GradientReducer::used()
};

}  // namespace dpwa::collective
