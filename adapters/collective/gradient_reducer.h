#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/stream_waits.h"
#include "adapters/collective/step_message.h"
#include "adapters/common/backward_hooks.h"
#include "adapters/torch_types.h"
#include "dpwa/collective/replica.h"
#include "dpwa/collectives/operation_queue.h"
#include "dpwa/rules/options.h"

namespace c10d {
class GradBucket;
class Reducer;
}  // namespace c10d

namespace dpwa::collective {

// Averages the gradients of a model over a process group while the backward pass still runs:
// c10d::Reducer, the engine of DistributedDataParallel, cuts them into buckets and sends each as
// soon as it is full; this class decides when it does so, weights what is sent, and keeps failures
// out of backward(). One (training) thread; the group outlives it.
//
// A step: backward() begins and ends the exchange; end_step() then gives its outcome. The mean is
// over samples: member k's gradient, a mean over its batch of b_k, has the weight b_k / (sum of b).
// Parameters without a gradient count as zeros; one that no member used keeps its gradient.
//
// When the group fails, .grad holds the gradients of this node alone, as if nothing had been sent.
class GradientReducer {
 public:
  // Of the parameters of the module that are trained, which are dense. Floating-point buffers, such
  // as BatchNorm statistics, are sent with every step: every member takes them over from the lowest
  // rank that was at work in the last step, or their average. Compares nothing: the members have
  // agreed on the model.
  //
  // `waits`: called around the waits for others at the end of a backward pass. `sends_checksums`:
  // the steps of the group at which compares_weights_at() carry a checksum of the parameters,
  // StepTally::weights.
  GradientReducer(const torch::nn::Module& module, const ProcessGroup& group,
                  const GradientOptions& options, WaitWords waits = {},
                  bool sends_checksums = false);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Samples in the batch whose backward pass comes next; 1 until the first call.
  void set_samples(double samples) { samples_ = samples; }

  // While on, backward() adds to the gradients of this node and sends nothing.
  void set_accumulating(bool on) { accumulating_ = on; }

  // Told to all with the next step.
  void set_stopping() { stopping_ = true; }
  // A number below 2^28, told to all with every step from the next one on.
  void set_note(std::uint32_t note) { note_ = note; }

  // Whether a backward pass of this step has averaged the gradients.
  bool done() const { return begun_; }

  // Takes part in a step without a backward pass of its own: sends what passes under accumulate()
  // have left in .grad, or else zeros. `joined`: this member has no more batches, and sends zeros.
  void contribute(bool joined);

  // Takes part in a step whose exchange has failed in another group, with the gradients that are in
  // .grad. `used`: as that group's reducer had it.
  void repeat(const std::vector<bool>& used) { exchange_without_backward(used); }
  // For each parameter whether it got a gradient in a backward pass of this step, or of the last
  // one.
  const std::vector<bool>& used() const { return used_; }

  // Ends the step that a backward pass, contribute() or repeat() has begun.
  StepResult end_step();

 private:
  struct Flight;  // a bucket on its way

  // Called by the autograd engine on the training thread.
  void fired(std::size_t index);
  void require_no_second_pass() const;
  void begin();
  void exchange_without_backward(const std::vector<bool>& used);
  void complete();  // at the end of the backward pass: what did not fire
  void tell();
  void send_message();
  void on_thread(std::size_t bytes, std::function<void()> exchange);
  std::size_t launch(c10d::GradBucket& bucket);
  at::Tensor landed(std::size_t bucket);
  void wait_for_all();
  void write_gradients(double total);
  std::string words_for(std::size_t bucket) const;
  void fail();

  const ProcessGroup& group_;
  const GradientOptions options_;
  const WaitWords wait_words_;
  const bool sends_checksums_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::unordered_map<const void*, std::size_t> places_;  // of the parameters, by TensorImpl
  std::unique_ptr<BackwardHooks> hooks_;
  std::unique_ptr<c10d::Reducer> reducer_;
  std::unique_ptr<collectives::OperationQueue> thread_;  // with a compression
  StreamWaits waits_;
  BufferExchange buffers_;
  bool rebuilt_ = false;
  std::optional<CollectiveError> unusable_;  // since the buckets could not be prepared

  double samples_ = 1;
  bool accumulating_ = false;
  bool stopping_ = false;
  std::uint32_t note_ = 0;

  // --- of the step under way
  bool begun_ = false;  // a backward pass sends, or has sent
  bool joined_ = false;
  bool landed_ = false;
  bool told_ = false;                          // the message is on its way, or nothing can be sent
  bool ended_ = false;                         // the next pass is of another step
  double weight_ = 1;                          // of this member's gradients, in units of unit_
  std::vector<bool> fired_;                    // in the pass that sends
  std::vector<bool> used_;                     // in any pass, also under accumulate()
  std::optional<std::vector<bool>> repeated_;  // used_ of a step that is made without a pass
  std::vector<Flight> flights_;
  std::vector<std::shared_ptr<collectives::Operation>> exchanges_;  // on the thread
  StepMessage message_;
  Exchanges others_;  // message and buffers
  std::optional<CollectiveError> error_;
  std::chrono::nanoseconds waited_{};
  std::uint64_t bytes_ = 0;

  // --- of the last step: the same on all members
  double share_ = 1;  // sum_share()
  double unit_ = 1;   // samples of a member at work, times that
  StepTally last_;
  std::uint64_t steps_ = 0;  // of this group
};

}  // namespace dpwa::collective
