#include "adapters/kvstore/shared_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>

#include "adapters/common/tensor_bytes.h"
#include "adapters/common/tensor_checksum.h"
#include "adapters/kvstore/torch_values.h"

namespace dpwa::kvstore {
namespace {

// Whether the bytes of both can be copied as they are.
bool are_plain(const at::Tensor& one, const at::Tensor& other) {
  return one.is_cpu() && other.is_cpu() && one.layout() == at::kStrided && one.is_contiguous() &&
         one.scalar_type() == other.scalar_type();
}

// The memory of a gradient for the mean, which is dense: it has the rows of all workers.
at::Tensor& room_for_mean(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined() || gradient.layout() != at::kStrided)
    gradient = at::zeros_like(parameter.detach());
  return gradient;
}

}  // namespace

SharedGradients::SharedGradients(WorkerSession& session, Parameters parameters, std::string call,
                                 const SharedKeys& limits)
    : parameters_(std::move(parameters)),
      exchange_(session, StepExchange::Values::by_pull, std::move(call)),
      places_(parameters_.size()),
      pushed_(parameters_.size()),
      present_(
          at::zeros({static_cast<std::int64_t>(parameters_.size() + checksum_parts)}, at::kFloat)) {
  cut_into_keys(limits);
  // 2bit has one threshold for a key, and the gradients of several layers differ in
  // magnitude.
  const bool compresses_shared = session.compression() != Compression::two_bit;
  for (const Key& key : keys_) {
    const auto& [name, parameter] = parameters_[key.members.front()];
    if (key.shared.defined()) {
      exchange_.add("(gradients from) " + name, key.shared, compresses_shared);
    } else {
      exchange_.add("(gradient) " + name, at::zeros_like(parameter), /*compresses=*/true);
    }
  }
  exchange_.add("(gradient) present", present_, /*compresses=*/false);
  exchange_.wait_created();
}

void SharedGradients::cut_into_keys(const SharedKeys& limits) {
  std::map<at::ScalarType, std::size_t> last;  // the last shared key of each type
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].second;
    const bool is_small = parameter.nbytes() <= limits.gradient_bytes;
    const auto open = last.find(parameter.scalar_type());
    const bool fits = is_small && open != last.end() &&
                      keys_[open->second].bytes + parameter.nbytes() <= limits.key_bytes;
    const std::size_t at = fits ? open->second : keys_.size();
    if (!fits) keys_.emplace_back();
    if (is_small) last[parameter.scalar_type()] = at;
    Key& key = keys_[at];
    places_[i] = {at, key.bytes};
    key.bytes += parameter.nbytes();
    key.members.push_back(i);
    key.missing = key.members.size();
  }
  for (Key& key : keys_) {
    if (key.members.size() == 1) continue;
    const at::Tensor& first = parameters_[key.members.front()].second;
    const auto elements = static_cast<std::int64_t>(key.bytes / first.itemsize());
    key.shared = at::zeros({elements}, first.options());
  }
}

at::Tensor SharedGradients::part_of(std::size_t index) const {
  const at::Tensor& parameter = parameters_[index].second;
  const auto from = static_cast<std::int64_t>(places_[index].from / parameter.itemsize());
  return keys_[places_[index].key]
      .shared.narrow(0, from, parameter.numel())
      .view(parameter.sizes());
}

// There may be thousands of gradients: plain ones are copied without an operation of LibTorch each.
void SharedGradients::copy_to_key(std::size_t index, const at::Tensor& gradient) {
  at::Tensor& shared = keys_[places_[index].key].shared;
  if (gradient.defined() && are_plain(gradient, shared)) {
    const auto values = const_bytes_of(gradient);
    if (values.empty()) return;
    std::memcpy(&bytes_of(shared)[places_[index].from], values.data(), values.size());
    return;
  }
  const at::NoGradGuard no_grad;
  at::Tensor part = part_of(index);
  if (gradient.defined()) {
    part.copy_(dense_on(gradient, shared.device()));
  } else {
    part.zero_();
  }
}

void SharedGradients::copy_from_key(std::size_t index, at::Tensor& gradient) const {
  const at::Tensor& shared = keys_[places_[index].key].shared;
  if (are_plain(gradient, shared)) {
    const auto values = bytes_of(gradient);
    if (values.empty()) return;
    std::memcpy(values.data(), &const_bytes_of(shared)[places_[index].from], values.size());
    return;
  }
  const at::NoGradGuard no_grad;
  gradient.detach().copy_(part_of(index));
}

void SharedGradients::push(std::size_t index, const kvclient::PushTerms& terms) {
  const auto& [name, parameter] = parameters_[index];
  if (pushed_[index]) throw std::logic_error("the gradient of '" + name + "' was pushed before");
  pushed_[index] = true;
  const at::Tensor& gradient = parameter.grad();
  present_.mutable_data_ptr<float>()[index] = gradient.defined() ? 1 : 0;
  const std::size_t at = places_[index].key;
  Key& key = keys_[at];
  if (!key.shared.defined())
    return exchange_.push(at, gradient.defined() ? gradient : at::zeros_like(parameter), terms);
  copy_to_key(index, gradient);
  if (--key.missing == 0) exchange_.push(at, key.shared, terms);
}

void SharedGradients::push_rest(const kvclient::PushTerms& terms,
                                std::optional<std::uint32_t> checksum) {
  checksum_ = checksum;
  const auto parts = checksum ? parts_of(*checksum) : std::array<float, checksum_parts>{};
  std::ranges::copy(parts, present_.mutable_data_ptr<float>() + parameters_.size());
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    if (!pushed_[i]) push(i, terms);
  }
  exchange_.push(keys_.size(), present_, terms);
}

bool SharedGradients::has_equal_checksums() const {
  const float* mean = present_.const_data_ptr<float>() + parameters_.size();
  return !checksum_ ||
         is_mean_of_equals(std::span<const float, checksum_parts>(mean, checksum_parts),
                           *checksum_);
}

ExchangeReport SharedGradients::finish() {
  std::vector<at::Tensor> outs;
  for (const Key& key : keys_) {
    outs.push_back(key.shared.defined() ? key.shared
                                        : room_for_mean(parameters_[key.members.front()].second));
  }
  outs.push_back(present_);
  const ExchangeReport report = exchange_.finish(outs);
  pushed_.assign(pushed_.size(), false);
  for (Key& key : keys_) key.missing = key.members.size();
  if (!report.complete()) return report;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].second;
    if (!is_there(i)) {
      parameter.mutable_grad().reset();
    } else if (keys_[places_[i].key].shared.defined()) {
      copy_from_key(i, room_for_mean(parameter));
    }
  }
  return report;
}

bool SharedGradients::is_there(std::size_t index) const {
  return present_.const_data_ptr<float>()[index] > 0 &&
         !exchange_.is_of_nothing(places_[index].key);
}

}  // namespace dpwa::kvstore
