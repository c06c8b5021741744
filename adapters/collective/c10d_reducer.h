#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>
#include <vector>

#include "adapters/collective/gradient_reducer.h"

namespace dpwa::collective {

// c10d's Reducer, configured for GradientReducer: every full bucket goes to `hook`, and nothing is
// copied back into the gradients. Passes on exceptions of c10d.
std::unique_ptr<c10d::Reducer> make_c10d_reducer(const std::vector<at::Tensor>& parameters,
                                                 const std::vector<std::string>& names,
                                                 const ProcessGroup& group,
                                                 const ReducerOptions& options,
                                                 std::unique_ptr<c10d::CommHookInterface> hook);

// The hook that c10d::Reducer calls for each bucket of gradients. The Reducer asks for a future per
// bucket and waits for it at the end of backward(). Our future is complete at once; the wait
// happens in `landed`, which reads the result and does not throw.
class BucketHook final : public c10d::CommHookInterface {
 public:
  // `launch`: sends a bucket that is full; its place in the order of launches is what `landed`, at
  // the end of the pass, gets to give the tensor with the mean.
  BucketHook(std::function<std::size_t(c10d::GradBucket&)> launch,
             std::function<at::Tensor(std::size_t)> landed)
      : launch_(std::move(launch)), landed_(std::move(landed)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
    future->markCompleted(static_cast<std::int64_t>(launch_(bucket)));
    return future;
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return landed_(static_cast<std::size_t>(result.toInt()));
  }

 private:
  std::function<std::size_t(c10d::GradBucket&)> launch_;
  std::function<at::Tensor(std::size_t)> landed_;
};

}  // namespace dpwa::collective
