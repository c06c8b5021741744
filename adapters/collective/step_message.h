#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/torch_types.h"
#include "dpwa/collective/step_tally.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// Operations under way, each with its tensor.
using Exchanges = std::vector<std::pair<c10::intrusive_ptr<c10d::Work>, at::Tensor>>;

// The message that goes with the gradients of one step. One (training) thread.
class StepMessage {
 public:
  // `used`: for each parameter, whether this member's backward pass gave it a gradient.
  void fill(const ProcessGroup& group, const OwnStep& own, const std::vector<bool>& used);
  // Begins the exchange, and adds it to `exchanges`; after it, the answers below hold.
  void send(const ProcessGroup& group, Exchanges& exchanges);

  double samples() const;
  StepTally tally() const;
  // Whether any member used this parameter.
  bool used(std::size_t parameter) const;

  // The tensor that the exchange writes into.
  const at::Tensor& tensor() const { return sums_; }

 private:
  std::size_t ranks_ = 0;
  at::Tensor sums_;  // float64: the words of step_tally.h
};

// Floating-point buffers of a model, such as BatchNorm statistics, sent with every step: all
// members take them over from one, or average them. Counters count the same steps on every rank.
// One (training) thread.
class BufferExchange {
 public:
  BufferExchange(const torch::nn::Module& module, bool average);

  // Copies the buffers to send. `source`: the rank whose buffers all members take over.
  void fill(int source);
  // Begins the exchange, if there is anything to send, and adds it to `exchanges`.
  void send(const ProcessGroup& group, Exchanges& exchanges);
  // Writes the received values into the buffers.
  void take(const ProcessGroup& group);

  // The tensor that the exchange writes into; undefined without buffers.
  const at::Tensor& tensor() const { return flat_; }

 private:
  std::vector<at::Tensor> buffers_;
  const bool average_;
  int source_ = 0;
  at::Tensor flat_;  // float32
};

}  // namespace dpwa::collective
