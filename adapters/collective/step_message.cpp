#include "adapters/collective/step_message.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace dpwa::collective {
namespace {

// The flags of a rank, as a sum of powers of two: each rank adds to its own place alone.
constexpr int joined_flag = 1;
constexpr int stopping_flag = 2;
constexpr int note_shift = 2;

}  // namespace

std::vector<std::size_t> differing_ranks(const std::vector<std::optional<std::uint32_t>>& weights) {
  std::optional<std::uint32_t> usual;
  for (const auto& one : weights) {
    const bool more = std::ranges::count(weights, one) > std::ranges::count(weights, usual);
    if (one && (!usual || more)) usual = one;
  }
  std::vector<std::size_t> differing;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    if (weights[rank] && weights[rank] != usual) differing.push_back(rank);
  }
  return differing;
}

void StepMessage::fill(const ProcessGroup& group, const Own& own, const std::vector<bool>& used) {
  ranks_ = static_cast<std::size_t>(group.size());
  sums_ = at::zeros({static_cast<std::int64_t>(1 + 2 * ranks_ + used.size())}, at::kDouble);
  auto* sums = sums_.mutable_data_ptr<double>();
  sums[0] = own.samples;
  sums[1 + group.rank()] = (own.joined ? joined_flag : 0) | (own.stopping ? stopping_flag : 0) |
                           static_cast<int>(own.note << note_shift);
  if (own.weights)
    sums[1 + ranks_ + static_cast<std::size_t>(group.rank())] =
        1 + static_cast<double>(*own.weights);
  for (std::size_t i = 0; i < used.size(); ++i) sums[1 + 2 * ranks_ + i] = used[i] ? 1 : 0;
}

void StepMessage::send(const ProcessGroup& group, Exchanges& exchanges) {
  std::vector<at::Tensor> list{sums_};
  exchanges.emplace_back(group.c10d()->allreduce(list), sums_);
}

double StepMessage::samples() const {
  return *sums_.const_data_ptr<double>();
}

StepTally StepMessage::tally() const {
  const auto* sums = sums_.const_data_ptr<double>();
  StepTally tally;
  tally.samples = samples();
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const auto flags = static_cast<int>(sums[1 + rank]);
    const bool joined = (flags & joined_flag) != 0;
    tally.joined += joined ? 1 : 0;
    const bool stopping = (flags & stopping_flag) != 0;
    if (stopping && tally.first_stopping < 0) tally.first_stopping = static_cast<int>(rank);
    if (!joined && tally.first_at_work < 0) tally.first_at_work = static_cast<int>(rank);
    tally.notes.push_back(static_cast<std::uint32_t>(flags) >> note_shift);
    const double weights = sums[1 + ranks_ + rank];
    tally.weights.emplace_back();
    if (weights > 0) tally.weights.back() = static_cast<std::uint32_t>(weights - 1);
  }
  return tally;
}

bool StepMessage::used(std::size_t parameter) const {
  return sums_.const_data_ptr<double>()[1 + 2 * ranks_ + parameter] != 0;
}

void BufferExchange::fill(int source) {
  source_ = source;
  if (buffers_.empty()) return;
  std::vector<at::Tensor> parts;
  for (const auto& buffer : buffers_) parts.push_back(buffer.reshape({-1}).to(at::kFloat));
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
