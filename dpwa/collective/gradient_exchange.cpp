#include "dpwa/collective/gradient_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto averaging = "averaging gradients";
// Of the bucket that is full first: its exchange begins early in backward().
constexpr std::uint64_t first_bucket_bytes = std::uint64_t{1} << 20;

}  // namespace

std::vector<std::vector<std::size_t>> plan_buckets(const std::vector<TensorSpec>& parameters,
                                                   std::uint64_t bucket_bytes) {
  struct Open {
    std::vector<std::size_t> parameters;
    std::uint64_t bytes = 0;
  };
  std::map<DType, Open> open;
  std::vector<std::vector<std::size_t>> buckets;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    Open& bucket = open[parameters[i].dtype];
    bucket.parameters.push_back(i);
    bucket.bytes += parameters[i].bytes();
    const std::uint64_t limit =
        buckets.empty() ? std::min(first_bucket_bytes, bucket_bytes) : bucket_bytes;
    if (bucket.bytes >= limit) buckets.push_back(std::exchange(bucket, {}).parameters);
  }
  for (auto& [type, bucket] : open)
    if (!bucket.parameters.empty()) buckets.push_back(std::move(bucket.parameters));
  return buckets;
}

struct GradientExchange::Bucket {
  std::vector<std::size_t> parameters;
  DType type = DType::float32;
  std::size_t bytes = 0;
  std::shared_ptr<std::byte> memory;
  std::size_t to_come = 0;   // gradients
  std::size_t missing = 0;   // at their places
  BytesGroup::WorkPtr work;  // null: not sent in this step
};

GradientExchange::GradientExchange(const std::vector<TensorSpec>& parameters,
                                   const BytesGroup& group, std::uint64_t bucket_bytes)
    : group_(group),
      parameters_(parameters),
      bucket_of_(parameters.size()),
      offset_of_(parameters.size()),
      added_(parameters.size()) {
  share_ = sum_share(group.size(), std::ranges::any_of(parameters, [](const TensorSpec& each) {
                       return each.dtype == DType::float16;
                     }));
  unit_ = share_;
  for (auto& planned : plan_buckets(parameters, bucket_bytes)) {
    Bucket bucket;
    for (const std::size_t parameter : planned) {
      bucket_of_[parameter] = buckets_.size();
      offset_of_[parameter] = bucket.bytes;
      bucket.bytes += parameters[parameter].bytes();
      bucket.type = parameters[parameter].dtype;
    }
    bucket.parameters = std::move(planned);
    bucket.memory = group.allocate(bucket.bytes);
    buckets_.push_back(std::move(bucket));
  }
}

GradientExchange::~GradientExchange() = default;

std::shared_ptr<std::byte> GradientExchange::place(std::size_t parameter) const {
  const auto& memory = buckets_[bucket_of_[parameter]].memory;
  return {memory, memory.get() + offset_of_[parameter]};
}

void GradientExchange::begin(double samples) {
  const int at_work = group_.size() - last_.joined;
  if (at_work > 0 && last_.samples > 0) unit_ = last_.samples / at_work * share_;
  begun_ = true;
  samples_ = samples;
  sent_ = 0;
  came_.assign(parameters_.size(), false);
  added_.assign(parameters_.size(), false);
  for (Bucket& bucket : buckets_) bucket.to_come = bucket.missing = bucket.parameters.size();
}

std::span<const std::size_t> GradientExchange::come(std::size_t parameter) {
  came_[parameter] = true;
  Bucket& bucket = buckets_[bucket_of_[parameter]];
  if (--bucket.to_come > 0) return {};
  return bucket.parameters;
}

void GradientExchange::add(std::size_t parameter) {
  added_[parameter] = true;
  --buckets_[bucket_of_[parameter]].missing;
  send_full_buckets();
}

void GradientExchange::send_full_buckets() {
  for (; sent_ < buckets_.size() && buckets_[sent_].missing == 0; ++sent_) {
    Bucket& bucket = buckets_[sent_];
    bucket.work = group_.begin_sum({bucket.memory.get(), bucket.bytes}, bucket.type, bucket.memory);
  }
}

void GradientExchange::begin_message(OwnStep own, const std::vector<bool>& used) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  own.samples = samples_;
  message_.assign(step_words(ranks, used.size()), 0);
  write_step(message_, static_cast<std::size_t>(group_.rank()), ranks, own, used);
  told_ = group_.begin_sum(std::as_writable_bytes(std::span(message_)), DType::float64);
}

std::string GradientExchange::words_for(std::size_t bucket) const {
  return "gradients, bucket " + std::to_string(bucket + 1) + " of " +
         std::to_string(buckets_.size()) + ", from " +
         parameters_[buckets_[bucket].parameters.front()].name + " on";
}

StepResult GradientExchange::end(OwnStep own, const std::vector<bool>& used, SharedBuffers& buffers,
                                 const WaitWords& waits) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (added_[i]) continue;
    std::memset(place(i).get(), 0, parameters_[i].bytes());
    add(i);
  }
  begin_message(std::move(own), used);
  buffers.begin(group_, std::max(0, last_.first_at_work));

  StepResult result;
  const auto take_note = [&](std::optional<CollectiveError> failure) {
    if (failure && !result.error) result.error = std::move(failure);
  };
  const auto from = SteadyClock::now();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    waits.begin(words_for(i));
    take_note(group_.wait(std::exchange(buckets_[i].work, nullptr), averaging));
    if (group_.size() > 1) result.bytes += buckets_[i].bytes;
  }
  take_note(group_.wait(told_, averaging));
  take_note(buffers.wait(group_, averaging));
  result.waited = SteadyClock::now() - from;
  waits.end();

  begun_ = false;
  ++steps_;
  if (result.error) return result;
  buffers.take(group_.size());
  last_ = tally_of(message_, static_cast<std::size_t>(group_.size()));
  result.tally = last_;
  return result;
}

double GradientExchange::divisor() const {
  const double total = last_.samples / unit_;
  return total > 0 ? total : 1;  // no member had a batch: zeros
}

bool GradientExchange::is_used(std::size_t parameter) const {
  return collective::is_used(message_, static_cast<std::size_t>(group_.size()), parameter);
}

}  // namespace dpwa::collective
