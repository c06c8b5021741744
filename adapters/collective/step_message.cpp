#include "adapters/collective/step_message.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/common/module_tensors.h"

namespace dpwa::collective {
namespace {

std::span<const double> words_of(const at::Tensor& sums) {
  return {sums.const_data_ptr<double>(), static_cast<std::size_t>(sums.numel())};
}

}  // namespace

void StepMessage::fill(const ProcessGroup& group, const OwnStep& own,
                       const std::vector<bool>& used) {
  ranks_ = static_cast<std::size_t>(group.size());
  const std::size_t words = step_words(ranks_, used.size());
  sums_ = at::zeros({static_cast<std::int64_t>(words)}, at::kDouble);
  write_step({sums_.mutable_data_ptr<double>(), words}, static_cast<std::size_t>(group.rank()),
             ranks_, own, used);
}

void StepMessage::send(const ProcessGroup& group, Exchanges& exchanges) {
  std::vector<at::Tensor> list{sums_};
  exchanges.emplace_back(group.c10d()->allreduce(list), sums_);
}

double StepMessage::samples() const {
  return words_of(sums_).front();
}

StepTally StepMessage::tally() const {
  return tally_of(words_of(sums_), ranks_);
}

bool StepMessage::used(std::size_t parameter) const {
  return is_used(words_of(sums_), ranks_, parameter);
}

BufferExchange::BufferExchange(const torch::nn::Module& module, bool average) : average_(average) {
  for (const auto& [name, buffer] : buffers_of(module))
    if (buffer.is_floating_point() && buffer.numel() > 0) buffers_.push_back(buffer);
}

void BufferExchange::fill(int source) {
  source_ = source;
  if (buffers_.empty()) return;
  const bool wide = std::ranges::any_of(
      buffers_, [](const at::Tensor& buffer) { return buffer.scalar_type() == at::kDouble; });
  std::vector<at::Tensor> parts;
  for (const auto& buffer : buffers_)
    parts.push_back(buffer.reshape({-1}).to(wide ? at::kDouble : at::kFloat));
  flat_ = at::cat(parts);
}

void BufferExchange::send(const ProcessGroup& group, Exchanges& exchanges) {
  if (!flat_.defined()) return;
  std::vector<at::Tensor> list{flat_};
  if (average_) {
    exchanges.emplace_back(group.c10d()->allreduce(list), flat_);
  } else {
    c10d::BroadcastOptions options;
    options.rootRank = source_;
    exchanges.emplace_back(group.c10d()->broadcast(list, options), flat_);
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
