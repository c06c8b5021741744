#include "examples/train/sample_source.h"

#include <algorithm>
#include <utility>

#include "dpwa/parallel/seed_streams.h"

namespace dpwa::train {
namespace {

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

SampleStream::SampleStream(Shard shard, std::uint64_t seed)
    : shard_(std::move(shard)), seed_(seed) {
  shuffle_pass(0);
}

std::span<const std::uint32_t> SampleStream::next(std::size_t count) {
  batch_.clear();
  while (batch_.size() < count) {
    if (pass() != shuffled_pass_) shuffle_pass(pass());
    batch_.push_back(order_[position_ % shard_.size()]);
    ++position_;
  }
  return batch_;
}

void SampleStream::seek(std::uint64_t position) {
  position_ = position;
}

void SampleStream::shuffle_pass(std::uint64_t pass) {
  order_ = shard_;
  Random random(SeedStreams::epoch_of(seed_, pass));
  shuffle(order_, random);
  shuffled_pass_ = pass;
}

double OwnSamples::done() const {
  return std::min(1.0, static_cast<double>(stream_.position()) / whole_);
}

std::span<const std::uint32_t> OwnSamples::next(const Place&) {
  const auto samples = stream_.next(std::min(batch_size_, total_ - stream_.position()));
  state_[0] = static_cast<std::int64_t>(stream_.position());
  ++state_[1];
  return samples;
}

void OwnSamples::seek(const RunPosition& position) {
  stream_.seek(position.of_stream());
  state_[0] = static_cast<std::int64_t>(stream_.position());
  state_[1] = static_cast<std::int64_t>(position.step);
}

// Samples of steps that the run does not have were not trained on.
void OwnSamples::move(std::uint64_t step, std::uint64_t taken, RunPosition& position) {
  position.step = step;
  position.samples = std::min(position.samples, taken);
  position.passed_over = taken - position.samples;
  seek(position);
}

void OwnSamples::settle(RunPosition& position) {
  const auto taken = static_cast<std::uint64_t>(state_[0]);
  const auto step = static_cast<std::uint64_t>(state_[1]);
  if (step != position.step || taken != position.of_stream()) move(step, taken, position);
}

void OwnSamples::go_on_at(std::uint64_t step, RunPosition& position, bool back) {
  if (step > position.step) {
    step = std::min(step, (total_ + batch_size_ - 1) / batch_size_);
    const std::uint64_t taken = std::min(total_, step * batch_size_);
    if (step > position.step) move(step, std::max(taken, position.of_stream()), position);
  } else if (step < position.step && back) {
    move(step, step * batch_size_, position);
  }
}

void SharedSamples::seek(const RunPosition& position) {
  cursor_.seek(position.cursor.value_or(0));
  state_[0] = static_cast<std::int64_t>(cursor_.position());
  state_[1] = static_cast<std::int64_t>(position.step);
}

bool SharedSamples::ended() const {
  return step() >= length_.steps || cursor_.ended();
}

double SharedSamples::done() const {
  return length_.steps != SharedCursor::no_end ? ratio(step(), length_.steps)
                                               : ratio(cursor_.position(), length_.samples);
}

std::span<const std::uint32_t> SharedSamples::next(const Place& place) {
  const ItemRange part = cursor_.part(place.rank, place.size);
  cursor_.advance(place.size);
  state_[0] = static_cast<std::int64_t>(cursor_.position());
  ++state_[1];
  order_.seek(part.from);
  return order_.next(part.count);
}

void SharedSamples::settle(RunPosition& position) {
  cursor_.seek(static_cast<std::uint64_t>(state_[0]));
  position.cursor = cursor_.position();
  position.step = step();
}

}  // namespace dpwa::train
