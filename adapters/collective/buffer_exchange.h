#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <utility>
#include <vector>

#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// Floating-point buffers of a model, such as BatchNorm statistics, sent with every step: all
// members take them over from one, or average them. One (training) thread.
class BufferExchange {
 public:
  void set(std::vector<at::Tensor> buffers) { buffers_ = std::move(buffers); }
  void set_average(bool on) { average_ = on; }

  // Copies the buffers to send. `source`: the rank whose buffers all members take over.
  void fill(int source);
  // Begins the exchange, if there is anything to send, and adds it to `works`.
  void send(const ProcessGroup& group, std::vector<c10::intrusive_ptr<c10d::Work>>& works);
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
