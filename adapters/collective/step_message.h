#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// Operations under way, each with its tensor.
using Exchanges = std::vector<std::pair<c10::intrusive_ptr<c10d::Work>, at::Tensor>>;

// The values that all members sent together with the gradients of one step.
struct StepTally {
  double samples = 0;                // in the batches of all members
  int joined = 0;                    // members that had no batch any more
  int first_stopping = -1;           // the lowest rank that was told to stop; -1: none
  int first_at_work = -1;            // the lowest rank that had one; -1: none
  std::vector<std::uint32_t> notes;  // of each rank: what it told the others, see set_note()
  // Of each rank: the checksum of its weights; none: it was not sent.
  std::vector<std::optional<std::uint32_t>> weights;
};

// The ranks whose weights are not those of most ranks (of the lowest ones, where as many have
// others). Empty: all that were sent are equal. Pure.
std::vector<std::size_t> differing_ranks(const std::vector<std::optional<std::uint32_t>>& weights);

// The message that goes with the gradients of one step. One (training) thread.
class StepMessage {
 public:
  struct Own {
    double samples = 0;
    bool joined = false;
    bool stopping = false;
    std::uint32_t note = 0;                // below 2^28
    std::optional<std::uint32_t> weights;  // their checksum
  };

  // `used`: for each parameter, whether this member's backward pass gave it a gradient.
  void fill(const ProcessGroup& group, const Own& own, const std::vector<bool>& used);
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
  // float64: the samples; for each rank, its flags; for each rank, the checksum of its weights
  // plus 1, or 0; for each parameter, how many used it.
  at::Tensor sums_;
};

// Floating-point buffers of a model, such as BatchNorm statistics, sent with every step: all
// members take them over from one, or average them. One (training) thread.
class BufferExchange {
 public:
  void set(std::vector<at::Tensor> buffers) { buffers_ = std::move(buffers); }
  void set_average(bool on) { average_ = on; }

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
  bool average_ = false;
  int source_ = 0;
  at::Tensor flat_;  // float32
};

}  // namespace dpwa::collective
