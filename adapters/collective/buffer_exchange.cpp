#include "adapters/collective/buffer_exchange.h"

#include <ATen/ops/cat.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace dpwa::collective {

void BufferExchange::fill(int source) {
  source_ = source;
  if (buffers_.empty()) return;
  std::vector<at::Tensor> parts;
  for (const auto& buffer : buffers_) parts.push_back(buffer.reshape({-1}).to(at::kFloat));
  flat_ = at::cat(parts);
}

void BufferExchange::send(const ProcessGroup& group,
                          std::vector<c10::intrusive_ptr<c10d::Work>>& works) {
  if (!flat_.defined()) return;
  std::vector<at::Tensor> list{flat_};
  if (average_) {
    works.push_back(group.c10d()->allreduce(list));
  } else {
    c10d::BroadcastOptions options;
    options.rootRank = source_;
    works.push_back(group.c10d()->broadcast(list, options));
  }
}

void BufferExchange::take(const ProcessGroup& group) {
  if (!flat_.defined()) return;
  if (average_) flat_.div_(group.size());
  std::int64_t from = 0;
  for (auto& buffer : buffers_) {
    buffer.copy_(flat_.narrow(0, from, buffer.numel()).view(buffer.sizes()));
    from += buffer.numel();
  }
}

}  // namespace dpwa::collective
