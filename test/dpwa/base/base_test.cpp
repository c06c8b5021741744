// Checksums, random numbers and threads. plain_text_test.cpp has the rest.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/base/random.h"
#include "dpwa/base/threads.h"

using namespace dpwa;

namespace {

std::uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("CRC32C gives the known answers of RFC 3720") {
  CHECK(crc_of("123456789") == 0xE3069283u);
  const std::vector<std::byte> zeros(32, std::byte{0});
  CHECK(crc32c(zeros) == 0x8A9136AAu);
  const std::vector<std::byte> ones(32, std::byte{0xFF});
  CHECK(crc32c(ones) == 0x62A8AB43u);
}

TEST_CASE("CRC32C of nothing is zero") {
  CHECK(crc_of("") == 0u);
}

TEST_CASE("CRC32C of data in parts is that of the whole") {
  std::vector<std::byte> data(5000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  Crc32c checksum;
  CHECK(checksum.value() == 0u);
  for (std::size_t at = 0, part = 0; at < data.size(); at += part++) {
    checksum.update(std::span(data).subspan(at, std::min(part, data.size() - at)));
  }
  CHECK(checksum.value() == crc32c(data));
}

TEST_CASE("CRC32C does not depend on the alignment of the data") {
  std::vector<std::byte> data(1000 + 64);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  for (std::size_t shift = 1; shift < 64; ++shift) {
    std::vector<std::byte> moved(shift + 1000);
    std::copy_n(data.begin(), 1000, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(crc32c(std::span(moved).subspan(shift)) == crc32c(std::span(data).first(1000)));
  }
}

TEST_CASE("the engine is the standard 64-bit Mersenne twister") {
  Random random(5489);
  std::uint64_t value = 0;
  for (int i = 0; i < 10000; ++i) value = random.next();
  CHECK(value == 9981545732273789042ULL);  // the value that the C++ standard prescribes
}

TEST_CASE("the same seed gives the same sequence, another seed another one") {
  Random a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double value = a.uniform(0, 1);
    CHECK(value == b.uniform(0, 1));
    differs = differs || value != c.uniform(0, 1);
  }
  CHECK(differs);
}

TEST_CASE("uniform stays in its half-open range and fills it") {
  Random random(1);
  double low = 5, high = -5, sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const double value = random.uniform(-2, 3);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  CHECK(low >= -2);
  CHECK(low < -1.99);
  CHECK(high < 3);
  CHECK(high > 2.99);
  CHECK(sum / 20000 == doctest::Approx(0.5).epsilon(0.05));
  CHECK(random.uniform(4, 4) == 4);  // an empty range has one value
}

TEST_CASE("below gives every value under its bound equally often") {
  Random random(2);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
  CHECK(random.below(1) == 0);
}

TEST_CASE("bernoulli is never true at 0, always at 1, and as often as asked between") {
  Random random(3);
  int quarter = 0;
  for (int i = 0; i < 20000; ++i) {
    CHECK_FALSE(random.bernoulli(0));
    CHECK(random.bernoulli(1));
    quarter += random.bernoulli(0.25);
  }
  CHECK(std::abs(quarter - 5000) < 300);
}

TEST_CASE("normal has the mean and deviation asked for") {
  Random random(4);
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double value = random.normal(3, 2);
    sum += value;
    squares += (value - 3) * (value - 3);
  }
  CHECK(sum / 20000 == doctest::Approx(3).epsilon(0.02));
  CHECK(squares / 20000 == doctest::Approx(4).epsilon(0.05));
}

TEST_CASE("derived seeds are the published SplitMix64 values") {
  CHECK(derive_seed(0, {}) == 0xE220A8397B1DCDAFULL);
}

TEST_CASE("every path derives a seed of its own") {
  std::set<std::uint64_t> seeds;
  std::size_t derived = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    seeds.insert(derive_seed(seed, {}));
    ++derived;
    for (std::uint64_t a = 0; a < 20; ++a) {
      seeds.insert(derive_seed(seed, {a}));
      ++derived;
      for (std::uint64_t b = 0; b < 20; ++b) {
        seeds.insert(derive_seed(seed, {a, b}));
        ++derived;
      }
    }
  }
  CHECK(seeds.size() == derived);
  CHECK(derive_seed(9, {1, 2}) == derive_seed(9, {1, 2}));
}

TEST_CASE("this machine has at least one processor, each listed once in ascending order") {
  const std::vector<int> processors = usable_processors();
  REQUIRE_FALSE(processors.empty());
  for (std::size_t i = 1; i < processors.size(); ++i) CHECK(processors[i - 1] < processors[i]);
}
