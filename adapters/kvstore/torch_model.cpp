#include "adapters/kvstore/torch_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "adapters/common/module_tensors.h"
#include "adapters/common/pinned_memory.h"
#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/torch_values.h"

namespace dpwa::kvstore {
namespace {

constexpr std::size_t cache_line = 64;

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) parts.push_back(tensor.detach().reshape({-1}));
  return at::cat(parts).contiguous();
}

Lent lent_of_host(const at::Tensor& values) {
  return {const_bytes_of(values), std::make_shared<const at::Tensor>(values)};
}

// Whether its bytes can be copied as they are.
bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous();
}

// The memory of a gradient for the mean, which is dense: it has the rows of all workers.
at::Tensor room_for_mean(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined() || gradient.layout() != at::kStrided)
    gradient = at::zeros_like(parameter.detach());
  return gradient.detach();
}

// Whether the event has come; waits for it if asked to.
Came once(c10::Event event) {
  return [done = std::make_shared<c10::Event>(std::move(event))](bool waits) {
    if (waits) done->synchronize();
    return waits || done->query();
  };
}

}  // namespace

TorchModel::TorchModel(torch::nn::Module& module) : flat_(module) {
  add_parameters(module);
  add_buffers_of(module);
  if (device().is_cpu()) return;
  copies_ = std::make_unique<HostCopies>(device(), "kvstore");
  const auto room = [](const Value& value) {
    return (value.spec.bytes() + cache_line - 1) / cache_line * cache_line;
  };
  std::size_t total = 0;
  for (const Value& value : values()) total += room(value);
  pinned_ = pinned_memory(total, device());
  std::size_t at = 0;
  for (const Value& value : values()) {
    places_.push_back(pinned_.bytes().subspan(at, value.spec.bytes()));
    at += room(value);
  }
}

void TorchModel::add_parameters(const torch::nn::Module& module) {
  for (const auto& [name, parameter] : each_once(parameters_of(module))) {
    add_parameter(name, spec_of(parameter, "key '" + name + "'"), parameter.requires_grad());
    parameters_.push_back(parameter);
    if (parameter.requires_grad()) trained_.push_back(parameter);
    written_.add(parameter);
  }
}

void TorchModel::add_buffers_of(const torch::nn::Module& module) {
  for (const auto& [name, buffer] : each_once(buffers_of(module))) {
    if (!buffer.is_floating_point()) continue;
    auto group = std::ranges::find_if(buffers_, [&](const Buffers& each) {
      return each.members.front().scalar_type() == buffer.scalar_type();
    });
    if (group == buffers_.end()) group = buffers_.emplace(buffers_.end());
    group->members.push_back(buffer);
  }
  for (Buffers& group : buffers_) {
    group.value = flattened(group.members);
    add_buffers(spec_of(group.value, "buffers"));
  }
}

Lent TorchModel::value(std::size_t index) {
  if (index < parameters()) return lent_of_host(dense_on(parameters_[index], at::kCPU));
  Buffers& group = buffers_[index - parameters()];
  group.value = flattened(group.members);
  return lent_of_host(dense_on(group.value, at::kCPU));
}

Lent TorchModel::lend(std::size_t index, const at::Tensor& values) {
  const at::Tensor dense = dense_on(values, device());
  if (!copies_) return lent_of_host(dense);
  Lent lent{places_[index], std::make_shared<const at::Tensor>(dense)};
  lent.came = once(copies_->out(dense, places_[index]));
  return lent;
}

Lent TorchModel::change(std::size_t index) {
  const at::NoGradGuard no_grad;
  if (index < parameters()) {
    at::Tensor change = std::exchange(before_[index], {});
    return lend(index, change.sub_(parameters_[index].detach()));
  }
  const Buffers& group = buffers_[index - parameters()];
  at::Tensor change = flattened(group.members);
  return lend(index, change.neg_().add_(group.value));
}

void TorchModel::remember() {
  const at::NoGradGuard no_grad;
  before_.assign(parameters(), {});
  for (const std::size_t each : trained()) before_[each] = parameters_[each].detach().clone();
}

void TorchModel::begin_writes() {
  if (copies_) copies_->begin_in();
}

void TorchModel::end_writes() {
  if (copies_) copies_->end_in();
  const at::NoGradGuard no_grad;
  for (Buffers& group : buffers_) {
    if (!std::exchange(group.is_new, false)) continue;
    std::int64_t from = 0;
    for (at::Tensor& member : group.members) {
      member.copy_(group.value.narrow(0, from, member.numel()).view(member.sizes()));
      from += member.numel();
    }
  }
}

void TorchModel::take(std::size_t index, const Slices& slices, at::Tensor to) {
  const auto copy_to = [&](std::span<std::byte> bytes) {
    if (!copy_slices(slices, bytes))
      throw std::logic_error("a value of another size than its tensor");
  };
  const at::NoGradGuard no_grad;
  if (copies_) {
    copy_to(places_[index]);
    return copies_->in(places_[index], to);
  }
  if (is_plain(to)) return copy_to(bytes_of(to));
  const at::Tensor host = at::empty(to.sizes(), to.options());
  copy_to(bytes_of(host));
  to.copy_(host);
}

void TorchModel::write(std::size_t index, const Slices& slices) {
  if (index < parameters()) return take(index, slices, parameters_[index].detach());
  Buffers& group = buffers_[index - parameters()];
  group.is_new = true;
  take(index, slices, group.value);
}

Lent TorchModel::gradient(std::size_t trained) {
  return lend(this->trained()[trained], trained_[trained].grad());
}

// There may be thousands of gradients: plain ones are copied without an operation of LibTorch each.
Came TorchModel::copy_gradient(std::size_t trained, std::span<std::byte> to) {
  const at::Tensor& gradient = trained_[trained].grad();
  if (copies_) {
    const at::Tensor dense =
        dense_on(gradient.defined() ? gradient : at::zeros_like(trained_[trained]), device());
    Came came = once(copies_->out(dense, to));
    copies_->keep(dense);
    return came;
  }
  if (to.empty()) return {};
  if (!gradient.defined()) {
    std::memset(to.data(), 0, to.size());
  } else {
    const at::Tensor dense = is_plain(gradient) ? gradient : dense_on(gradient, at::kCPU);
    std::memcpy(to.data(), const_bytes_of(dense).data(), to.size());
  }
  return {};
}

AlignedBuffer TorchModel::memory(std::size_t bytes) {
  if (!copies_) return AlignedBuffer(bytes);
  AlignedBuffer memory = pinned_memory(bytes, device());
  copies_->hold(memory);
  return memory;
}

void TorchModel::take_mean(std::size_t trained, const Slices& mean) {
  take(this->trained()[trained], mean, room_for_mean(trained_[trained]));
}

void TorchModel::take_mean(std::size_t trained, std::span<const std::byte> mean) {
  at::Tensor to = room_for_mean(trained_[trained]);
  if (copies_) return copies_->in(mean, to);
  if (mean.empty()) return;
  if (is_plain(to)) {
    std::memcpy(bytes_of(to).data(), mean.data(), mean.size());
    return;
  }
  const at::NoGradGuard no_grad;
  to.copy_(at::from_blob(const_cast<std::byte*>(mean.data()), to.sizes(),
                         at::TensorOptions(to.scalar_type())));
}

void TorchModel::drop_gradient(std::size_t trained) {
  trained_[trained].mutable_grad().reset();
}

void TorchModel::note_sent(std::size_t trained) {
  sent_.add(trained_value(trained).name, trained_[trained]);
}

}  // namespace dpwa::kvstore
