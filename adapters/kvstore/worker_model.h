#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "adapters/kvstore/step_exchange.h"
#include "adapters/torch_types.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// The floating-point buffers of a model, such as BatchNorm statistics, as values of the store: one
// key for all of one type. A step changes them by itself, in the forward pass; what a worker
// pushes is its change since the last step. The servers add the mean of the changes of all workers
// (merged pushes), or each change divided by the number of workers. Integer buffers stay on the
// node.
class SharedBuffers {
 public:
  explicit SharedBuffers(const torch::nn::Module& model);

  // The keys that add_to() makes.
  std::vector<std::pair<std::string, ValueSpec>> keys() const;
  void add_to(StepExchange& exchange);
  // What StepExchange::finish() writes for the keys of these buffers.
  std::vector<at::Tensor> outs() const;
  // `scale`: of the change.
  void push(StepExchange& exchange, kvclient::PushTerms terms, double scale) const;
  // Copies the received values to the buffers of the model.
  void take();

 private:
  struct Group {
    std::vector<at::Tensor> members;
    at::Tensor value;  // flat, on their device; the value on the servers
    std::size_t key = 0;
  };
  static std::string name_of_key(const Group& group);

  std::vector<Group> groups_;
};

// The tensors of a model as a worker of the store has them, each once.
struct WorkerModel {
  explicit WorkerModel(torch::nn::Module& model);

  std::vector<std::pair<std::string, at::Tensor>> parameters;  // in the order of the forward pass
  std::vector<std::size_t> trained;                            // of `parameters`
  std::vector<at::Tensor> trained_parameters;
  std::vector<bool> used;  // of `trained`: it has had a gradient
  SharedBuffers buffers;
  // What the values of the store are written to: parameters, then, once they have keys, buffers.
  std::vector<at::Tensor> outs;
};

}  // namespace dpwa::kvstore
