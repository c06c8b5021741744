#include "dpwa/parallel/shares.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace dpwa;

TEST_CASE("shard sizes add up, differ by at most one, and the first ones are larger") {
  CHECK(shard_sizes(10, 4) == std::vector<std::uint64_t>{3, 3, 2, 2});
  CHECK(shard_sizes(2, 4) == std::vector<std::uint64_t>{1, 1, 0, 0});
  for (std::uint64_t total = 0; total < 70; ++total) {
    for (std::uint64_t parts = 1; parts < 12; ++parts) {
      const auto sizes = shard_sizes(total, parts);
      REQUIRE(sizes.size() == parts);
      CHECK(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == total);
      CHECK(sizes.front() - sizes.back() <= 1);
      CHECK(std::is_sorted(sizes.rbegin(), sizes.rend()));
      std::uint64_t from = 0;
      for (std::uint64_t i = 0; i < parts; ++i) {
        CHECK(shard(total, parts, i).from == from);
        from = shard(total, parts, i).end();
      }
      CHECK(from == total);
    }
  }
}

TEST_CASE("as few devices as possible work on a batch, none longer than if all did") {
  CHECK(fewest_devices(5, 4) == 3);
  CHECK(fewest_devices(9, 8) == 5);
  CHECK(fewest_devices(8, 8) == 8);
  CHECK(fewest_devices(1, 8) == 1);
  for (std::uint64_t devices = 1; devices < 10; ++devices) {
    for (std::uint64_t batch = 1; batch <= 4 * devices; ++batch) {
      const auto longest = [&](std::uint64_t used) { return shard_sizes(batch, used).front(); };
      const std::uint64_t used = fewest_devices(batch, devices);
      CHECK(used <= devices);
      CHECK(longest(used) == longest(devices));
      if (used > 1) CHECK(longest(used - 1) > longest(devices));
    }
  }
}

TEST_CASE("with BatchNorm no device has one sample alone, unless that is the whole batch") {
  CHECK(parts_of_at_least(7, 4, 2) == 3);
  CHECK(parts_of_at_least(1, 4, 2) == 1);
  CHECK(parts_of_at_least(0, 4, 2) == 1);
  CHECK(parts_of_at_least(100, 4, 2) == 4);
  for (std::uint64_t devices = 1; devices < 10; ++devices) {
    for (std::uint64_t batch = 1; batch <= 4 * devices; ++batch) {
      const auto shares = device_shares(batch, devices, 2);
      std::uint64_t from = 0;
      for (const ItemRange& share : shares) {
        CHECK(share.from == from);
        CHECK(share.count >= std::min<std::uint64_t>(batch, 2));
        from = share.end();
      }
      CHECK(from == batch);
      CHECK(shares.front().count - shares.back().count <= 1);
    }
  }
}
