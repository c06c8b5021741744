#include "dpwa/collective/host_replica.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/collective/bytes_group.h"
#include "dpwa/rules/compared_steps.h"
#include "dpwa/rules/second_pass.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collective {
namespace {

const BytesGroup& bytes_group(const StepGroup& group) {
  return static_cast<const BytesGroup&>(group);
}

// "float32 [3, 4]"
std::string form_of(const TensorSpec& tensor) {
  std::string axes;
  for (const std::uint64_t size : tensor.shape)
    axes += (axes.empty() ? "" : ", ") + std::to_string(size);
  return std::string(name_of(tensor.dtype)) + " [" + axes + "]" +
         (tensor.rule == BlendRule::carry ? ", not trained" : "");
}

// Those that are trained, or those of floating-point numbers that are not.
std::vector<std::size_t> places_of(const Manifest& manifest, const std::vector<bool>& trained,
                                   bool wanted) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (trained[i] == wanted && manifest.tensors()[i].rule == BlendRule::interpolate)
      places.push_back(i);
  return places;
}

std::span<std::byte> memory_of(const Manifest& manifest, std::span<std::byte> memory,
                               std::size_t tensor) {
  return memory.subspan(manifest.offset_of(tensor), manifest.tensors()[tensor].bytes());
}

std::vector<SharedBuffers::Place> buffers_of(const Manifest& manifest, std::span<std::byte> memory,
                                             const std::vector<bool>& trained) {
  std::vector<SharedBuffers::Place> buffers;
  for (const std::size_t i : places_of(manifest, trained, false))
    buffers.push_back({manifest.tensors()[i].dtype, memory_of(manifest, memory, i)});
  return buffers;
}

}  // namespace

HostReplica::HostReplica(const CollectiveConfig& config, const Manifest& manifest,
                         std::span<std::byte> memory, const std::vector<bool>& trained,
                         GradientSource& source)
    : config_(config),
      manifest_(manifest),
      memory_(memory),
      source_(source),
      buffers_(buffers_of(manifest, memory, trained), config.average_buffers) {
  for (const std::size_t i : places_of(manifest, trained, true)) {
    parameters_.push_back(manifest.tensors()[i]);
    values_.push_back(memory_of(manifest, memory, i));
  }
  used_.resize(parameters_.size());
}

std::span<const std::size_t> HostReplica::come(std::size_t parameter) {
  if (!exchange_) return {};
  if (exchange_->has_begun() && exchange_->has_come(parameter)) refuse_second_pass();
  used_[parameter] = true;
  if (accumulating_) return {};
  if (!exchange_->has_begun()) exchange_->begin(samples_);
  return exchange_->come(parameter);
}

void HostReplica::send(std::span<const std::size_t> parameters) {
  for (const std::size_t parameter : parameters) exchange_->add(parameter);
}

void HostReplica::give(const std::vector<std::size_t>& parameters) {
  if (parameters.empty()) return;
  source_.give(parameters, exchange_->weight());
  send(parameters);
}

std::shared_ptr<std::byte> HostReplica::place(std::size_t parameter) const {
  return exchange_ ? exchange_->place(parameter) : nullptr;
}

void HostReplica::break_off() {
  const MutexLock lock(mutex_);
  if (group_ != nullptr) group_->break_off(-1);
}

std::vector<Signature::Entry> HostReplica::tensors() const {
  std::vector<Signature::Entry> entries;
  for (const TensorSpec& tensor : manifest_.tensors())
    entries.push_back({tensor.name, form_of(tensor)});
  return entries;
}

// The model changes once all of it is there.
void HostReplica::broadcast_model(const StepGroup& group, int source) {
  const bool gives = group.rank() == source;
  AlignedBuffer there(gives ? 0 : memory_.size());
  broadcast(group, "the model", "uint8 [" + std::to_string(memory_.size()) + "]",
            gives ? memory_ : there.bytes(), source);
  if (!gives) std::ranges::copy(there.bytes(), memory_.begin());
}

// Through sums of all members, so that the bits are the same. The model changes once all are there.
void HostReplica::average_model(const StepGroup& group, const std::vector<bool>& averaged) {
  const bool counts = averaged[static_cast<std::size_t>(group.rank())];
  const auto number = static_cast<double>(std::ranges::count(averaged, true));
  const BytesGroup& members = bytes_group(group);
  std::vector<std::pair<std::span<std::byte>, AlignedBuffer>> means;
  for (const Region& region : manifest_.regions()) {
    if (!is_floating_point(region.dtype)) continue;
    const auto memory = memory_.subspan(region.offset, region.bytes);
    AlignedBuffer& mean = means.emplace_back(memory, AlignedBuffer(region.bytes)).second;
    if (counts) std::ranges::copy(memory, mean.bytes().begin());
    if (auto failure = members.wait(members.begin_sum(mean.bytes(), region.dtype),
                                    "averaging the weights of those that trained apart"))
      throw CollectiveError(*failure);
    scale(region.dtype, mean.bytes(), 1 / number);
  }
  for (const auto& [memory, mean] : means) std::ranges::copy(mean.bytes(), memory.begin());
}

void HostReplica::enter(const StepGroup& group, WaitWords waits) {
  waits_ = std::move(waits);
  exchange_ =
      std::make_unique<GradientExchange>(parameters_, bytes_group(group), config_.bucket_bytes);
  used_.assign(parameters_.size(), false);
  note_ = 0;
  ++groups_;
  const MutexLock lock(mutex_);
  group_ = &bytes_group(group);
}

void HostReplica::drop() {
  exchange_.reset();
  const MutexLock lock(mutex_);
  group_ = nullptr;
}

StepResult HostReplica::exchange() {
  if (!exchange_->has_begun()) return contribute(/*joined=*/false, used_);
  std::vector<std::size_t> left;  // of buckets that have not all of theirs, or while accumulating
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (used_[i] && !exchange_->has(i)) left.push_back(i);
  give(left);
  return end(/*joined=*/false);
}

StepResult HostReplica::contribute(bool joined, const std::vector<bool>& used) {
  std::vector<std::size_t> given;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) given.push_back(i);
  if (given.empty()) {
    source_.clear();
    exchange_->begin(0);
  } else {
    exchange_->begin(samples_);
    give(given);
  }
  used_ = used;
  used_.resize(parameters_.size());
  return end(joined);
}

StepResult HostReplica::end(bool joined) {
  OwnStep own{.joined = joined, .stopping = stopping_, .note = note_, .weights = {}};
  // One that has joined makes no steps any more.
  if (!joined && compares_weights_at(exchange_->steps())) own.weights = weights();
  StepResult result = exchange_->end(own, used_, buffers_, waits_);
  last_used_ = std::exchange(used_, std::vector<bool>(parameters_.size()));
  if (result.error) return result;
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (exchange_->is_used(i)) taken.push_back(i);
  source_.take(taken, exchange_->divisor());
  return result;
}

std::uint32_t HostReplica::weights() const {
  Crc32c sum;
  for (const auto& values : values_) sum.update(values);
  return sum.value();
}

}  // namespace dpwa::collective
