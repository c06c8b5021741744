#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/step_message.h"
#include "dpwa/rules/options.h"

namespace dpwa::collective {

struct ReducerOptions : GradientOptions {
  // Called around the waits for others at the end of a backward pass, with a text for the log.
  std::function<void(const std::string&)> begin_wait = [](const std::string&) {};
  std::function<void()> end_wait = [] {};
  // Steps of the group at which compares_weights_at() carry a checksum of the parameters, which
  // must be in host memory: StepTally::weights.
  bool send_checksums = false;
};

// Averages the gradients of a model over a process group while the backward pass still runs:
// c10d::Reducer, the engine of DistributedDataParallel, cuts them into buckets and sends each as
// soon as it is full; this class decides when it does so, weights what is sent, and keeps failures
// out of backward(). One (training) thread; the group outlives it.
//
// A step: backward() begins and ends the exchange; result() then gives its outcome. The mean is
// over samples: member k's gradient, a mean over its batch of b_k, has the weight b_k / (sum of b).
// Parameters without a gradient count as zeros; one that no member used keeps its gradient.
//
// When the group fails, .grad holds the gradients of this node alone, as if nothing had been sent.
class GradientReducer {
 public:
  // `parameters`: those that are trained, with names for messages, in the same order on all
  // members; contiguous. Compares nothing: the members have agreed on the model.
  GradientReducer(std::vector<std::pair<std::string, at::Tensor>> parameters,
                  const ProcessGroup& group, const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Samples in the batch whose backward pass comes next; 1 until the first call.
  void set_samples(double samples);

  // While on, backward() adds to the gradients of this node and sends nothing.
  void set_accumulating(bool on);

  // Sent with every step: floating-point tensors, such as BatchNorm statistics, that every member
  // takes over from the lowest rank that was at work in the last step, or averages.
  void set_shared_buffers(std::vector<at::Tensor> buffers);

  // Told to all with the next step.
  void set_stopping();
  // A number below 2^28, told to all with every step from the next one on.
  void set_note(std::uint32_t note);

  // Whether a backward pass of this step has averaged the gradients.
  bool done() const;

  // Takes part in a step without a backward pass of its own: sends what passes under accumulate()
  // have left in .grad, or else zeros. `joined`: this member has no more batches, and sends zeros.
  void contribute(bool joined);

  // Takes part in a step whose exchange has failed in another group, with the gradients that are in
  // .grad. `used`: as that group's reducer had it.
  void repeat(const std::vector<bool>& used);
  // For each parameter whether it got a gradient in a backward pass of this step, or of the last
  // one.
  const std::vector<bool>& used() const;

  // Ends the step. Returns the values that all sent, or the reason why the exchange failed. Empty:
  // there was no backward pass.
  struct Result {
    std::optional<StepTally> tally;
    std::optional<CollectiveError> error;
    std::chrono::nanoseconds waited{};  // of backward() for the network, beyond its own work
    std::uint64_t bytes = 0;            // of gradients that this member sent
  };
  std::optional<Result> end_step();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dpwa::collective
