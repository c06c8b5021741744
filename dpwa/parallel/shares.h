#pragma once

#include <cstdint>
#include <vector>

namespace dpwa {

// Items of a sequence: `count` of them, `from` on.
struct ItemRange {
  std::uint64_t from = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return from + count; }
};

// `total` items cut into `parts` parts: sizes differ by at most one, the first total mod parts
// parts have one more. parts > 0.
std::vector<std::uint64_t> shard_sizes(std::uint64_t total, std::uint64_t parts);
// Part `index` of them.
ItemRange shard(std::uint64_t total, std::uint64_t parts, std::uint64_t index);

// The fewest of `devices` equal devices that finish `batch` samples as soon as all of them would:
// ceil(B / ceil(B / D)). At least 1; 5 samples take 3 of 4 devices, as some device has 2 anyway.
std::uint64_t fewest_devices(std::uint64_t batch, std::uint64_t devices);

// As many parts as possible, `parts` at most, none of which has less than `least` items; a total
// below `least` is one part. `least` is 2 for a model with BatchNorm, which needs two samples to
// measure a variance; at least 1.
std::uint64_t parts_of_at_least(std::uint64_t total, std::uint64_t parts, std::uint64_t least);

// What each of `devices` computes of a batch: one entry for each device that is used, by
// fewest_devices() and parts_of_at_least(). Sizes differ by at most one.
std::vector<ItemRange> device_shares(std::uint64_t batch, std::uint64_t devices,
                                     std::uint64_t least = 1);

}  // namespace dpwa
