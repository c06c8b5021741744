#include "examples/train/samples.h"

#include <algorithm>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/mersenne_twister.hpp>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/parallel/seed_streams.h"

namespace dpwa::train {
namespace {

std::vector<Shard> make_iid(std::size_t size, std::size_t nodes, std::uint64_t seed) {
  Shard all(size);
  std::iota(all.begin(), all.end(), 0U);
  Random random(SeedStreams(seed).common(SeedRole::split));
  shuffle(all, random);
  std::vector<Shard> shards;
  for (std::size_t rank = 0; rank < nodes; ++rank) {
    const ItemRange range = shard(size, nodes, rank);
    const auto part = std::span(all).subspan(range.from, range.count);
    shards.emplace_back(part.begin(), part.end());
  }
  return shards;
}

// One draw from the symmetric Dirichlet distribution, as normalised gamma variates.
std::vector<double> draw_shares(double alpha, std::size_t nodes, std::uint64_t seed) {
  boost::random::mt19937_64 engine(seed);
  boost::random::gamma_distribution<double> gamma(alpha, 1.0);
  std::vector<double> shares(nodes);
  for (double& share : shares) share = gamma(engine);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum > 0) {
    for (double& share : shares) share /= sum;
  } else {  // every variate underflowed: the limit of small alpha is all to one node
    shares[engine() % nodes] = 1;
  }
  return shares;
}

void fill_empty_shards(std::vector<Shard>& shards) {
  for (Shard& shard : shards) {
    if (!shard.empty()) continue;
    Shard& largest = *std::ranges::max_element(shards, {}, std::ranges::size);
    shard.push_back(largest.back());
    largest.pop_back();
  }
}

std::vector<Shard> make_dirichlet(double alpha, std::span<const std::uint8_t> labels,
                                  std::size_t nodes, std::uint64_t seed) {
  std::vector<Shard> by_class(1 + *std::max_element(labels.begin(), labels.end()));
  for (std::size_t i = 0; i < labels.size(); ++i)
    by_class[labels[i]].push_back(static_cast<std::uint32_t>(i));
  std::vector<Shard> shards(nodes);
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    Shard& samples = by_class[c];
    Random random(SeedStreams(seed).of_pair(SeedRole::split, c, 0));
    shuffle(samples, random);
    const auto shares = draw_shares(alpha, nodes, SeedStreams(seed).of_pair(SeedRole::split, c, 1));
    double share_sum = 0;
    std::size_t from = 0;
    for (std::size_t rank = 0; rank < nodes; ++rank) {
      share_sum += shares[rank];
      const double cut = std::round(share_sum * static_cast<double>(samples.size()));
      const std::size_t to = rank + 1 == nodes
                                 ? samples.size()
                                 : std::clamp(static_cast<std::size_t>(cut), from, samples.size());
      shards[rank].insert(shards[rank].end(), samples.begin() + static_cast<std::ptrdiff_t>(from),
                          samples.begin() + static_cast<std::ptrdiff_t>(to));
      from = to;
    }
  }
  fill_empty_shards(shards);
  return shards;
}

}  // namespace

std::vector<Shard> make_shards(const Split& split, std::span<const std::uint8_t> labels,
                               std::size_t nodes, std::uint64_t seed) {
  if (split.kind == SplitKind::shared) {
    Shard all(labels.size());
    std::iota(all.begin(), all.end(), 0U);
    return std::vector<Shard>(nodes, all);
  }
  if (labels.size() < nodes)
    throw ConfigError("--split: " + std::to_string(labels.size()) +
                      " samples cannot be split over " + std::to_string(nodes) +
                      " nodes; accepted: shared, or a larger data set");
  auto shards = split.kind == SplitKind::iid ? make_iid(labels.size(), nodes, seed)
                                             : make_dirichlet(split.alpha, labels, nodes, seed);
  for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
  return shards;
}

std::span<const std::uint32_t> SampleStream::at(std::uint64_t position, std::size_t count) {
  batch_.clear();
  for (; batch_.size() < count; ++position) {
    const std::uint64_t pass = position / shard_.size();
    if (pass != pass_) {
      order_ = shard_;
      Random random(SeedStreams::epoch_of(seed_, pass));
      shuffle(order_, random);
      pass_ = pass;
    }
    batch_.push_back(order_[position % shard_.size()]);
  }
  return batch_;
}

void Samples::seek(const RunPosition& position) {
  const auto taken = is_shared_ ? position.cursor.value_or(0) : position.of_stream();
  state_[0] = static_cast<std::int64_t>(taken);
  state_[1] = static_cast<std::int64_t>(position.step);
}

double Samples::done() const {
  if (length_.steps != SharedCursor::no_end)
    return static_cast<double>(step()) / static_cast<double>(length_.steps);
  return std::min(1.0, static_cast<double>(position()) / whole_);
}

std::span<const std::uint32_t> Samples::next(const Place& place) {
  const Place own = is_shared_ ? place : Place{};
  SharedCursor cursor(batch_size_, length_.samples, least_);
  cursor.seek(position());
  const ItemRange part = cursor.part(own.rank, own.size);
  cursor.advance(own.size);
  state_[0] = static_cast<std::int64_t>(cursor.position());
  ++state_[1];
  return order_.at(part.from, part.count);
}

// Samples of steps that the run does not have were not trained on.
void Samples::move(std::uint64_t step, std::uint64_t taken, RunPosition& position) {
  position.step = step;
  position.samples = std::min(position.samples, taken);
  position.passed_over = taken - position.samples;
  seek(position);
}

void Samples::settle(RunPosition& position) {
  const std::uint64_t taken = this->position();
  if (is_shared_) {
    position.cursor = taken;
    position.step = step();
  } else if (step() != position.step || taken != position.of_stream()) {
    move(step(), taken, position);
  }
}

void Samples::go_on_at(std::uint64_t step, RunPosition& position, bool back) {
  if (is_shared_) return;
  if (step > position.step) {
    const std::uint64_t total = length_.samples;
    step = std::min(step, (total + batch_size_ - 1) / batch_size_);
    const std::uint64_t taken = std::min(total, step * batch_size_);
    if (step > position.step) move(step, std::max(taken, position.of_stream()), position);
  } else if (step < position.step && back) {
    move(step, step * batch_size_, position);
  }
}

}  // namespace dpwa::train
