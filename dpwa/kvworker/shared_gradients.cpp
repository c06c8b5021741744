#include "dpwa/kvworker/shared_gradients.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include "dpwa/kvworker/weights_checksum.h"

namespace dpwa::kvstore {
SharedGradients::SharedGradients(WorkerSession& session, WorkerModel& model, std::string call,
                                 const SharedKeys& limits)
    : model_(model),
      exchange_(session, StepExchange::Values::by_pull, std::move(call)),
      places_(model.trained().size()),
      pushed_(model.trained().size()),
      present_(model.trained().size() + checksum_parts) {
  cut_into_keys(limits);
  // 2bit has one threshold for a key, and the gradients of several layers differ in
  // magnitude.
  add_keys(/*compresses_shared=*/session.compression() != Compression::two_bit);
}

std::uint64_t SharedGradients::bytes_of(std::size_t index) const {
  return model_.trained_value(index).spec.bytes();
}

void SharedGradients::cut_into_keys(const SharedKeys& limits) {
  std::map<DType, std::size_t> last;  // the last shared key of each type
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const DType type = model_.trained_value(i).spec.dtype;
    const bool is_small = bytes_of(i) <= limits.gradient_bytes;
    const auto open = last.find(type);
    const bool fits = is_small && open != last.end() &&
                      keys_[open->second].bytes + bytes_of(i) <= limits.key_bytes;
    const std::size_t at = fits ? open->second : keys_.size();
    if (!fits) keys_.emplace_back();
    if (is_small) last[type] = at;
    Key& key = keys_[at];
    places_[i] = {at, key.bytes};
    key.bytes += bytes_of(i);
    key.members.push_back(i);
    key.missing = key.members.size();
  }
}

void SharedGradients::add_keys(bool compresses_shared) {
  for (Key& key : keys_) {
    const auto& [name, spec, is_buffers] = model_.trained_value(key.members.front());
    if (!key.is_shared()) {
      exchange_.add({"(gradient) " + name, spec}, zeros(spec.bytes()), /*compresses=*/true);
      continue;
    }
    key.shared = model_.memory(key.bytes);
    const ValueSpec whole{spec.dtype, {key.bytes / size_of(spec.dtype)}};
    exchange_.add({"(gradients from) " + name, whole}, {key.shared.bytes()}, compresses_shared);
  }
  exchange_.add({"(gradient) present", {DType::float32, {present_.size()}}},
                {std::as_bytes(std::span(present_))}, /*compresses=*/false);
  exchange_.wait_created();
}

std::span<std::byte> SharedGradients::place_of(std::size_t index) {
  return keys_[places_[index].key].shared.bytes().subspan(places_[index].from, bytes_of(index));
}

void SharedGradients::push(std::size_t index, const kvclient::PushTerms& terms) {
  if (pushed_[index])
    throw std::logic_error("the gradient of '" + model_.trained_value(index).name +
                           "' was pushed before");
  pushed_[index] = true;
  const bool is_there = model_.has_gradient(index);
  present_[index] = is_there ? 1 : 0;
  const std::size_t at = places_[index].key;
  Key& key = keys_[at];
  if (!key.is_shared())
    return exchange_.push(at, is_there ? model_.gradient(index) : zeros(bytes_of(index)), terms);
  if (Came came = model_.copy_gradient(index, place_of(index))) key.came = std::move(came);
  if (--key.missing == 0)
    exchange_.push(at, {key.shared.bytes(), nullptr, std::exchange(key.came, nullptr)}, terms);
}

void SharedGradients::push_rest(const kvclient::PushTerms& terms,
                                std::optional<std::uint32_t> checksum) {
  checksum_ = checksum;
  const auto parts = checksum ? parts_of(*checksum) : std::array<float, checksum_parts>{};
  std::ranges::copy(parts, present_.end() - checksum_parts);
  for (std::size_t i = places_.size(); i-- > 0;) {
    if (!pushed_[i]) push(i, terms);
  }
  exchange_.push(keys_.size(), {std::as_bytes(std::span(present_))}, terms);
}

bool SharedGradients::has_equal_checksums() const {
  const auto mean = std::span(present_).last<checksum_parts>();
  return !checksum_ || is_mean_of_equals(mean, *checksum_);
}

ExchangeReport SharedGradients::finish() {
  const auto write = [this](std::size_t at, const Slices& slices) {
    if (at < keys_.size() && !keys_[at].is_shared())
      return model_.take_mean(keys_[at].members.front(), slices);
    const auto to =
        at < keys_.size() ? keys_[at].shared.bytes() : std::as_writable_bytes(std::span(present_));
    if (!copy_slices(slices, to)) throw std::logic_error("a value of another size than its key");
  };
  model_.begin_writes();
  const ExchangeReport report = exchange_.finish(write);
  pushed_.assign(pushed_.size(), false);
  for (Key& key : keys_) key.missing = key.members.size();
  for (std::size_t i = 0; i < places_.size() && report.complete(); ++i) {
    if (!is_there(i)) {
      model_.drop_gradient(i);
    } else if (keys_[places_[i].key].is_shared()) {
      model_.take_mean(i, place_of(i));
    }
  }
  model_.end_writes();
  return report;
}

bool SharedGradients::is_there(std::size_t index) const {
  return present_[index] > 0 && !exchange_.is_of_nothing(places_[index].key);
}

}  // namespace dpwa::kvstore
