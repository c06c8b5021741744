#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/collective/gradient_exchange.h"
#include "dpwa/collective/replica.h"
#include "dpwa/config/config.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::collective {

// Where the gradients of a step are, in a framework that HostReplica does not know. Parameters are
// numbered as those that are trained are, in the order of the model. Called by the thread that
// calls the replica; may throw.
class GradientSource {
 public:
  virtual ~GradientSource() = default;
  // Throws where the program has changed what the node relies on.
  virtual void check() = 0;
  // Writes the gradients of these parameters, times `weight`, to their places.
  virtual void give(const std::vector<std::size_t>& parameters, double weight) = 0;
  // Makes what lies at their places, divided by `divisor`, the gradients of these parameters.
  virtual void take(const std::vector<std::size_t>& parameters, double divisor) = 0;
  // No parameter has a gradient any more.
  virtual void clear() = 0;
};

// A model in host memory, laid out as its manifest says, in groups of BytesGroup. Its gradients
// come one by one, while a backward pass runs, or when a step asks for them. One thread at a time;
// break_off() any.
class HostReplica final : public Replica {
 public:
  // `memory` and `source` outlive it. `trained`: by tensor.
  HostReplica(const CollectiveConfig& config, const Manifest& manifest, std::span<std::byte> memory,
              const std::vector<bool>& trained, GradientSource& source);

  // Samples in the batch whose backward pass comes next; 1 until the first call.
  void set_samples(double samples) { samples_ = samples; }
  // While on, gradients are added to those of this node and not sent.
  void set_accumulating(bool on) { accumulating_ = on; }

  // A backward pass has given a parameter its gradient. Returns the parameters whose gradients,
  // times weight(), are to be written to their places now, and then sent: those of a bucket, once
  // all of them have come. Empty: none, or they stay with the program. Throws std::logic_error for
  // a second pass, whose gradients would be added to those that have left.
  std::span<const std::size_t> come(std::size_t parameter);
  double weight() const { return exchange_->weight(); }
  // They are there.
  void send(std::span<const std::size_t> parameters);
  // Changes with the places.
  std::uint64_t groups() const { return groups_; }
  std::shared_ptr<std::byte> place(std::size_t parameter) const;

  // Ends an exchange that waits: the group is lost to this node.
  void break_off();

  std::vector<Signature::Entry> tensors() const override;
  void check() const override { source_.check(); }
  bool is_on_host() const override { return true; }
  void broadcast_model(const StepGroup& group, int source) override;
  void average_model(const StepGroup& group, const std::vector<bool>& averaged) override;
  void enter(const StepGroup& group, WaitWords waits) override;
  void drop() override;
  bool has_begun() const override { return exchange_ && exchange_->has_begun(); }
  StepResult exchange() override;
  StepResult repeat() override { return contribute(/*joined=*/false, last_used_); }
  StepResult exchange_joined() override { return contribute(/*joined=*/true, {}); }
  void set_stopping() override { stopping_ = true; }
  void set_note(std::uint32_t note) override { note_ = note; }

 private:
  StepResult contribute(bool joined, const std::vector<bool>& used);
  void give(const std::vector<std::size_t>& parameters);
  StepResult end(bool joined);
  std::uint32_t weights() const;  // their checksum

  const CollectiveConfig config_;
  const Manifest manifest_;
  const std::span<std::byte> memory_;
  GradientSource& source_;
  std::vector<TensorSpec> parameters_;        // those that are trained
  std::vector<std::span<std::byte>> values_;  // of these
  SharedBuffers buffers_;
  Mutex mutex_;
  const BytesGroup* group_ DPWA_GUARDED_BY(mutex_) = nullptr;  // to break it off
  std::unique_ptr<GradientExchange> exchange_;                 // null: in no group
  WaitWords waits_;
  std::uint64_t groups_ = 0;
  double samples_ = 1;
  bool accumulating_ = false;
  bool stopping_ = false;
  std::uint32_t note_ = 0;
  std::vector<bool> used_;       // in any pass of this step, also while accumulating
  std::vector<bool> last_used_;  // in the step that was exchanged last
};

}  // namespace dpwa::collective
