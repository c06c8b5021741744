#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/parallel/largest_batch.h"
#include "dpwa/parallel/seed_streams.h"
#include "dpwa/parallel/shares.h"
#include "test/support/broken_invariant.h"

using namespace dpwa;

namespace {

std::vector<std::uint64_t> shard_sizes(std::uint64_t total, std::uint64_t parts) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < parts; ++i) sizes.push_back(shard(total, parts, i).count);
  return sizes;
}

}  // namespace

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

namespace {

// How often each position was taken.
class Taken {
 public:
  explicit Taken(std::uint64_t end) : times_(end) {}
  void add(const ItemRange& part) {
    for (std::uint64_t i = part.from; i < part.end(); ++i) ++times_.at(i);
  }
  bool each_once() const {
    return std::ranges::all_of(times_, [](int times) { return times == 1; });
  }

 private:
  std::vector<int> times_;
};

}  // namespace

TEST_CASE("members take neighbouring parts of a step, and share out what is left at the end") {
  SharedCursor cursor(10, 75);
  CHECK(cursor.part(0, 3).from == 0);
  CHECK(cursor.part(2, 3).from == 20);
  CHECK(cursor.part(2, 3).count == 10);
  cursor.advance(3);
  cursor.advance(3);
  CHECK(cursor.position() == 60);
  CHECK(cursor.part(0, 4).count == 4);  // 15 samples for 4 members
  CHECK(cursor.part(3, 4).count == 3);
  CHECK(cursor.part(3, 4).end() == 75);
  cursor.advance(4);
  CHECK(cursor.ended());
  CHECK(cursor.part(0, 4).count == 0);
  cursor.advance(4);
  CHECK(cursor.position() == 75);
}

TEST_CASE("no part is below the least size, if need be by leaving members without samples") {
  SharedCursor cursor(8, 5, 2);
  CHECK(cursor.part(0, 4).count == 3);
  CHECK(cursor.part(1, 4).count == 2);
  CHECK(cursor.part(2, 4).count == 0);
  CHECK(cursor.part(3, 4).count == 0);
}

TEST_CASE("every sample is taken once, whatever number of members each step has") {
  Random random(8);
  for (int run = 0; run < 300; ++run) {
    const std::uint64_t end = 1 + random.below(2000);
    const std::uint64_t batch = 1 + random.below(40);
    const std::uint64_t least = 1 + random.below(2);
    Taken taken(end);
    // As many as there may be; those that are away take no part, and come back with the position
    // of the others.
    std::vector<SharedCursor> members(9, SharedCursor(batch, end, least));
    std::uint64_t position = 0;
    while (position < end) {
      const std::uint64_t size = 1 + random.below(members.size());
      std::uint64_t smallest = ~0ULL, largest = 0;
      for (std::uint64_t rank = 0; rank < size; ++rank) {
        SharedCursor& member = members[rank];
        member.seek(position);
        const ItemRange part = member.part(rank, size);
        taken.add(part);
        if (part.count > 0) smallest = std::min(smallest, part.count);
        largest = std::max(largest, part.count);
        member.advance(size);
        REQUIRE(member.position() == members.front().position());
      }
      CHECK(largest <= std::max(batch, 2 * std::min(least, batch) - 1));
      CHECK(largest - smallest <= 1);
      REQUIRE(members.front().position() > position);
      position = members.front().position();
    }
    CHECK(taken.each_once());
  }
}

namespace {

constexpr SeedRole roles[] = {SeedRole::weights,     SeedRole::split,     SeedRole::order,
                              SeedRole::noise,       SeedRole::synthetic, SeedRole::statistics,
                              SeedRole::shared_order};

}  // namespace

TEST_CASE("a seed stands for the same streams in every version") {
  const SeedStreams streams(1);
  CHECK(streams.common(SeedRole::weights) == derive_seed(1, {1}));
  CHECK(streams.common(SeedRole::split) == derive_seed(1, {2}));
  CHECK(streams.of_rank(SeedRole::order, 3) == derive_seed(1, {3, 3}));
  CHECK(streams.of_rank(SeedRole::order, 3, 2) == derive_seed(derive_seed(1, {3, 3}), {2}));
  CHECK(streams.of_rank(SeedRole::noise, 0) == derive_seed(1, {4, 0}));
  CHECK(streams.of_pair(SeedRole::noise, 5, 77) == derive_seed(1, {4, 5, 77}));
  CHECK(streams.common(SeedRole::synthetic) == derive_seed(1, {5}));
  CHECK(streams.common(SeedRole::statistics) == derive_seed(1, {6}));
  CHECK(streams.common(SeedRole::shared_order, 9) == derive_seed(derive_seed(1, {7}), {9}));
  CHECK(streams.common(SeedRole::weights) == 0x6C5795E14B3B7E33ULL);
}

TEST_CASE("every role, rank and epoch has a stream of its own") {
  std::set<std::uint64_t> seeds;
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const SeedStreams streams(seed);
    for (const SeedRole role : roles) {
      seeds.insert(streams.common(role)), ++count;
      for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
        seeds.insert(streams.common(role, epoch)), ++count;
      // A role is either common or per rank.
      if (role != SeedRole::order && role != SeedRole::noise) continue;
      for (std::uint64_t rank = 0; rank < 16; ++rank) {
        for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
          seeds.insert(streams.of_rank(role, rank, epoch)), ++count;
      }
    }
  }
  CHECK(seeds.size() == count);
}

TEST_CASE("streams of neighbouring ranks and epochs are not correlated") {
  const SeedStreams streams(1);
  constexpr int draws = 4000;
  const auto values = [](std::uint64_t seed) {
    Random random(seed);
    std::vector<double> values;
    for (int i = 0; i < draws; ++i) values.push_back(random.normal(0, 1));
    return values;
  };
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return std::abs(sum / draws);
  };
  const double bound = 4 / std::sqrt(draws);  // four standard deviations
  const auto first = values(streams.of_rank(SeedRole::noise, 0));
  CHECK(correlation(first, values(streams.of_rank(SeedRole::noise, 1))) < bound);
  CHECK(correlation(first, values(streams.of_rank(SeedRole::noise, 0, 1))) < bound);
  CHECK(correlation(first, values(streams.of_rank(SeedRole::order, 0))) < bound);
  CHECK(correlation(first, values(SeedStreams(2).of_rank(SeedRole::noise, 0))) < bound);
}

TEST_CASE("a shuffle is the same for the same seed, with every library") {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  Random random(1);
  dpwa::shuffle(values, random);
  CHECK(values == std::vector<int>{5, 7, 6, 8, 4, 2, 0, 3, 9, 1});
}

TEST_CASE("every order comes equally often") {
  Random random(5);
  std::array<int, 6> counts{};
  for (int run = 0; run < 60000; ++run) {
    std::vector<std::size_t> values{0, 1, 2};
    dpwa::shuffle(values, random);
    ++counts[2 * values[0] + (values[1] > values[2] ? 1 : 0)];
  }
  for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
}

TEST_CASE("the largest batch that fits is found exactly, in few trials, none of them twice") {
  for (std::uint64_t limit : {1, 2, 3, 100, 1000}) {
    for (std::uint64_t most = 0; most <= limit; ++most) {
      std::set<std::uint64_t> tried;
      const auto found = largest_that_fits(limit, [&](std::uint64_t batch) {
        CHECK(batch >= 1);
        CHECK(batch <= limit);
        CHECK(tried.insert(batch).second);
        return batch <= most;
      });
      CHECK(found == most);
      CHECK(tried.size() <= 22);
    }
  }
}

TEST_CASE("a tenth is kept as a margin") {
  CHECK(with_margin(0) == 0);
  CHECK(with_margin(1) == 1);
  CHECK(with_margin(2) == 1);
  CHECK(with_margin(10) == 9);
  CHECK(with_margin(11) == 9);
  CHECK(with_margin(19) == 17);
  CHECK(with_margin(1000) == 900);
}

TEST_CASE("memory is fitted by a line, and the line tells the largest batch within a budget") {
  const MemoryLine line = fit_memory({{1, 1010}, {2, 1020}, {4, 1040}});
  CHECK(line.fixed == doctest::Approx(1000));
  CHECK(line.per_sample == doctest::Approx(10));
  CHECK(line.largest_within(1505, 1 << 20) == 50);
  CHECK(line.largest_within(1505, 32) == 32);
  CHECK(line.largest_within(1005, 32) == 0);
  // Scatter, and memory that does not grow at all.
  CHECK(fit_memory({{1, 1000}, {2, 1030}, {3, 1020}}).per_sample == doctest::Approx(10));
  CHECK(fit_memory({{1, 1000}, {2, 1000}}).largest_within(1000, 77) == 77);
  CHECK(fit_memory({{1, 1000}, {2, 900}}).per_sample == 0);
  CHECK(fit_memory({{8, 500}}).fixed == 500);
}

TEST_CASE("within a budget steps are measured until they tell enough, none beyond the budget") {
  std::vector<std::uint64_t> measured;
  const auto memory = [&](std::uint64_t batch) {
    measured.push_back(batch);
    return 1000 + 10.0 * static_cast<double>(batch);
  };
  using Sizes = std::vector<std::uint64_t>;
  const auto enough = largest_within_budget(1e6, 1 << 20, 60, memory);
  CHECK(measured == Sizes{1, 2, 4, 8});
  CHECK(enough.largest == 99900);
  CHECK(enough.points.size() == 4);

  measured.clear();
  CHECK(largest_within_budget(1055, 1 << 20, 1e9, memory).largest == 5);
  CHECK(measured == Sizes{1, 2, 4});
  measured.clear();
  CHECK(largest_within_budget(1e9, 6, 1e9, memory).largest == 6);
  CHECK(measured == Sizes{1, 2, 4});
  CHECK(largest_within_budget(1009, 6, 1e9, memory).largest == 0);
  CHECK(largest_within_budget(1010, 6, 1e9, memory).largest == 1);
}

TEST_CASE("a batch for no devices is a defect") {
  CHECK(test::breaks("a batch is shared by some devices", [] { fewest_devices(8, 0); }));
}
