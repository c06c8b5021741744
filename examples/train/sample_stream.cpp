#include "examples/train/sample_stream.h"

#include <utility>

#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shuffle.h"

namespace dpwa::train {

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

}  // namespace dpwa::train
