#include "dpwa/kvworker/host_model.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "interpolation/kernels/kernels.h"

namespace dpwa::kvstore {
namespace {

// `from` - `subtracted`, as what a push lends.
Lent difference(DType dtype, std::vector<std::byte> from, std::span<const std::byte> subtracted) {
  kernels::delta(dtype, from, subtracted, -1);
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(from));
  return {*owner, owner};
}

}  // namespace

HostModel::HostModel(const Manifest& manifest, std::span<std::byte> memory,
                     const std::vector<bool>& trained) {
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const TensorSpec& tensor = manifest.tensors()[i];
    const auto own = memory.subspan(manifest.offset_of(i), tensor.bytes());
    if (trained[i] || (tensor.rule == BlendRule::carry && is_stored(tensor.dtype))) {
      const ValueSpec spec{tensor.dtype, tensor.shape};
      if (const auto problem = spec_problem(spec))
        throw std::invalid_argument("tensor '" + tensor.name + "' " + *problem);
      add_parameter(tensor.name, spec, trained[i]);
      parameters_.push_back(own);
    } else if (tensor.rule == BlendRule::interpolate) {
      auto group = std::ranges::find(buffers_, tensor.dtype, &Buffers::dtype);
      if (group == buffers_.end()) group = buffers_.insert(buffers_.end(), {tensor.dtype, {}});
      group->members.push_back(own);
    }
  }
  for (Buffers& group : buffers_) {
    group.value = flattened(group);
    add_buffers({group.dtype, {group.value.size() / size_of(group.dtype)}});
  }
  gradients_.resize(this->trained().size());
  made_.resize(gradients_.size());
  sent_.resize(gradients_.size());
  frozen_.resize(gradients_.size());
}

std::vector<std::byte> HostModel::flattened(const Buffers& buffers) const {
  std::vector<std::byte> all;
  for (const auto member : buffers.members) all.insert(all.end(), member.begin(), member.end());
  return all;
}

void HostModel::set_gradient(std::size_t trained, std::byte* gradient) {
  gradients_.at(trained) = gradient;
}

Lent HostModel::value(std::size_t index) {
  if (index < parameters()) return {parameters_[index]};
  Buffers& group = buffers_[index - parameters()];
  group.value = flattened(group);
  return {group.value};
}

Lent HostModel::change(std::size_t index) {
  const DType dtype = values()[index].spec.dtype;
  if (index < parameters())
    return difference(dtype, std::exchange(before_[index], {}), parameters_[index]);
  const Buffers& group = buffers_[index - parameters()];
  return difference(dtype, group.value, flattened(group));
}

void HostModel::remember() {
  before_.assign(parameters(), {});
  for (const std::size_t each : trained())
    before_[each].assign(parameters_[each].begin(), parameters_[each].end());
}

void HostModel::write(std::size_t index, const Slices& slices) {
  const bool is_parameter = index < parameters();
  const std::span<std::byte> to =
      is_parameter ? parameters_[index] : std::span(buffers_[index - parameters()].value);
  if (!copy_slices(slices, to)) throw std::logic_error("a value of another size than its tensor");
  if (is_parameter) return;
  const std::byte* from = to.data();
  for (const auto member : buffers_[index - parameters()].members) {
    std::copy_n(from, member.size(), member.data());
    from += member.size();
  }
}

Lent HostModel::gradient(std::size_t trained) {
  return {{gradients_[trained], trained_value(trained).spec.bytes()}};
}

Came HostModel::copy_gradient(std::size_t trained, std::span<std::byte> to) {
  if (to.empty()) return {};
  if (has_gradient(trained)) {
    std::memcpy(to.data(), gradients_[trained], to.size());
  } else {
    std::memset(to.data(), 0, to.size());
  }
  return {};
}

std::span<std::byte> HostModel::room_for_mean(std::size_t trained) {
  changes_.are_means = true;
  const std::uint64_t bytes = trained_value(trained).spec.bytes();
  if (has_gradient(trained)) return {gradients_[trained], bytes};
  if (changes_.made.empty() || changes_.made.back() != trained) changes_.made.push_back(trained);
  made_[trained].resize(bytes);
  return made_[trained];
}

void HostModel::take_mean(std::size_t trained, const Slices& mean) {
  if (!copy_slices(mean, room_for_mean(trained)))
    throw std::logic_error("a mean of another size than its gradient");
}

void HostModel::take_mean(std::size_t trained, std::span<const std::byte> mean) {
  const auto to = room_for_mean(trained);
  if (!mean.empty()) std::memcpy(to.data(), mean.data(), mean.size());
}

void HostModel::drop_gradient(std::size_t trained) {
  changes_.are_means = true;
  std::erase(changes_.made, trained);
  changes_.dropped.push_back(trained);
  gradients_[trained] = nullptr;
}

}  // namespace dpwa::kvstore
