#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "dpwa/config/config.h"
#include "examples/train/files.h"
#include "examples/train/samples.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;

TEST_CASE("a file is written whole, with the mode that it is given less the umask") {
  const test::TemporaryDirectory directory;
  const auto mode = [&](const char* name) {
    return std::filesystem::status(directory / name).permissions();
  };
  using std::filesystem::perms;
  test::write_text(directory / "secret.tmp", "of a process that was killed");
  std::filesystem::permissions(directory / "secret.tmp", perms(0644));
  const auto before = ::umask(0002);
  train::write_file_atomically(directory / "plain", {"a ", "text"});
  train::write_file_atomically(directory / "secret", {"x"}, 0600);
  ::umask(before);
  CHECK(test::read_text(directory / "plain") == "a text");
  CHECK((mode("plain") == perms(0664)));
  CHECK((mode("secret") == perms(0600)));
}

using namespace dpwa::train;

namespace {

std::vector<std::uint8_t> ten_classes(std::size_t size) {
  std::vector<std::uint8_t> labels(size);
  for (std::size_t i = 0; i < size; ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return labels;
}

bool is_partition(const std::vector<Shard>& shards, std::size_t size) {
  std::vector<int> seen(size, 0);
  for (const Shard& shard : shards)
    for (const auto sample : shard) ++seen.at(sample);
  return std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; });
}

// Mean over the nodes of the largest fraction that one class has in the shard.
double concentration(const std::vector<Shard>& shards, const std::vector<std::uint8_t>& labels) {
  double sum = 0;
  for (const Shard& shard : shards) {
    std::vector<double> counts(10, 0);
    for (const auto sample : shard) ++counts[labels[sample]];
    sum += *std::max_element(counts.begin(), counts.end()) / static_cast<double>(shard.size());
  }
  return sum / static_cast<double>(shards.size());
}

}  // namespace

TEST_CASE("iid: every sample is in one shard and sizes differ by one at most") {
  const auto labels = ten_classes(1003);
  const auto shards = make_shards({SplitKind::iid, 0}, labels, 4, 1);
  CHECK(is_partition(shards, 1003));
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(shards[rank].size() == (rank < 3 ? 251 : 250));
  CHECK(concentration(shards, labels) < 0.2);
  CHECK(shards == make_shards({SplitKind::iid, 0}, labels, 4, 1));
  CHECK(shards != make_shards({SplitKind::iid, 0}, labels, 4, 2));
}

TEST_CASE("dirichlet: every sample is in one shard, none is empty, small alpha gives few classes") {
  const auto labels = ten_classes(2000);
  for (const double alpha : {1e-4, 0.1, 1.0, 1000.0})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto shards = make_shards({SplitKind::dirichlet, alpha}, labels, 8, seed);
      CHECK(is_partition(shards, 2000));
      for (const Shard& shard : shards) {
        CHECK_FALSE(shard.empty());
        CHECK(std::is_sorted(shard.begin(), shard.end()));
      }
    }
  const auto at = [&](double alpha) {
    return concentration(make_shards({SplitKind::dirichlet, alpha}, labels, 8, 3), labels);
  };
  CHECK(at(0.1) > 0.4);
  CHECK(at(1000) < 0.15);
}

TEST_CASE("dirichlet: shares of a class have the mean and variance of the distribution") {
  const auto labels = ten_classes(10000);
  const double alpha = 0.5;
  const std::size_t nodes = 4;
  double sum = 0;
  double squares = 0;
  const int seeds = 400;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto shards =
        make_shards({SplitKind::dirichlet, alpha}, labels, nodes, static_cast<std::uint64_t>(seed));
    const double share =
        std::count_if(shards[1].begin(), shards[1].end(), [](auto i) { return i % 10 == 3; }) /
        1000.0;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / seeds;
  const double expected_variance = (1.0 / 4) * (3.0 / 4) / (nodes * alpha + 1);
  CHECK(mean == doctest::Approx(0.25).epsilon(0.15));
  CHECK(squares / seeds - mean * mean == doctest::Approx(expected_variance).epsilon(0.2));
}

TEST_CASE("shared: every node has every sample") {
  const auto shards = make_shards({SplitKind::shared, 0}, ten_classes(50), 3, 1);
  for (const Shard& shard : shards) CHECK(shard.size() == 50);
}

TEST_CASE("a single node has all the data whatever the split") {
  for (const Split split :
       {Split{SplitKind::iid, 0}, Split{SplitKind::dirichlet, 0.1}, Split{SplitKind::shared, 0}})
    CHECK(make_shards(split, ten_classes(70), 1, 1).at(0).size() == 70);
}

TEST_CASE("fewer samples than nodes are refused where every node needs its own") {
  const auto refusal = [](Split split) {
    return test::message_of<ConfigError>([&] { make_shards(split, ten_classes(3), 4, 1); });
  };
  CHECK(test::has(refusal({SplitKind::iid, 0}), "3 samples cannot be split over 4 nodes"));
  CHECK(test::has(refusal({SplitKind::dirichlet, 1}), "3 samples"));
  CHECK(refusal({SplitKind::shared, 0}).empty());
}
