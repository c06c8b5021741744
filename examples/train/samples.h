#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "adapters/adapter_types.h"
#include "dpwa/parallel/shares.h"
#include "examples/train/options.h"
#include "examples/train/plan.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

using Shard = std::vector<std::uint32_t>;  // sample numbers, rising

// Which samples each of `nodes` nodes trains on. The same arguments give the same shards
// everywhere, so every node computes them by itself.
//   iid:       a random partition; sizes differ by at most one, the first ones get more.
//   dirichlet: a partition; of each class the nodes take shares drawn from Dirichlet(alpha). A node
//              without any sample gets one of the largest shard.
//   shared:    every sample to every node.
// Throws ConfigError when there are fewer samples than nodes (iid, dirichlet).
std::vector<Shard> make_shards(const Split& split, std::span<const std::uint8_t> labels,
                               std::size_t nodes, std::uint64_t seed);

// The endless order in which a node takes the samples of its shard: pass after pass, each in its
// own order, drawn from (seed, pass). A batch may span two passes, so all batches are full. A
// position, the number of samples taken before, always gives the same samples, so resuming is
// exact. One owner, one thread.
class SampleStream {
 public:
  // `shard` is not empty. `seed` belongs to the node, or to all (dpwa/parallel/seed_streams.h).
  SampleStream(Shard shard, std::uint64_t seed) : shard_(std::move(shard)), seed_(seed) {}

  // `count` samples from this position on; valid until the next call.
  std::span<const std::uint32_t> at(std::uint64_t position, std::size_t count);

 private:
  Shard shard_;
  std::uint64_t seed_;
  std::optional<std::uint64_t> pass_;  // that `order_` is of
  Shard order_;
  Shard batch_;
};

// The data of a node, batch by batch, and the progress of its run: the samples of its own shard by
// a stream of its own, or the data that all nodes of a synchronous group share. With shared data
// they take the next samples of one common order in each step, each node its part according to its
// place; all hold the same position, and pass it on to nodes that join later. One owner, one
// thread.
class Samples {
 public:
  // Position in the samples and step, in memory that the caller gives to Adapter::share(). next()
  // advances both, so that a node which joins takes over those of the step under way.
  using State = std::span<std::int64_t, 2>;

  // `whole`: the denominator of done(), when it must be the same on nodes whose shards differ by a
  // sample; 0: total_samples.
  static Samples own(SampleStream stream, std::uint64_t batch_size, std::uint64_t total_samples,
                     State state, double whole = 0) {
    const RunLength length{.samples = total_samples};
    return {false, std::move(stream), batch_size, length, 1, state, whole};
  }
  // `order` is over all samples and the same on all nodes; `least` as in SharedCursor.
  static Samples shared(SampleStream order, std::uint64_t batch_size, RunLength length,
                        std::uint64_t least, State state) {
    return {true, std::move(order), batch_size, length, least, state, 0};
  }

  // Before the first step: continues after this position.
  void seek(const RunPosition& position);
  bool ended() const { return step() >= length_.steps || position() >= length_.samples; }
  double done() const;  // of the whole length, from 0 to 1
  std::uint64_t position() const { return static_cast<std::uint64_t>(state_[0]); }

  // Takes the samples of the next step for a node in that place; valid until the next call. None
  // when fewer are left than there are nodes.
  std::span<const std::uint32_t> next(const Place& place);

  // After the start and after every step: takes over a position that the group has moved.
  void settle(RunPosition& position);
  // Where the group has no memory for settle(): goes on at this step of it, past the samples of the
  // steps between, but not beyond the end of the run. `back`: also at an earlier step, whose
  // samples are taken again, because the run has no update of the steps after it. No effect with
  // shared data.
  void go_on_at(std::uint64_t step, RunPosition& position, bool back);

 private:
  Samples(bool is_shared, SampleStream order, std::uint64_t batch_size, RunLength length,
          std::uint64_t least, State state, double whole)
      : is_shared_(is_shared),
        order_(std::move(order)),
        batch_size_(batch_size),
        length_(length),
        least_(least),
        whole_(whole > 0 ? whole : static_cast<double>(length.samples)),
        state_(state) {}

  std::uint64_t step() const { return static_cast<std::uint64_t>(state_[1]); }
  void move(std::uint64_t step, std::uint64_t taken, RunPosition& position);

  bool is_shared_;
  SampleStream order_;
  std::uint64_t batch_size_;
  RunLength length_;
  std::uint64_t least_;
  double whole_;
  State state_;
};

}  // namespace dpwa::train
