// Checksums, numbers, random numbers and threads. plain_text_test.cpp has the rest.

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/base/numbers.h"
#include "dpwa/base/plain_text.h"
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

namespace dpwa::wire {
namespace {

TEST_CASE("printable text in any script is plain") {
  CHECK(is_plain_text(""));
  CHECK(is_plain_text("layer1.0.conv-2 (frozen) ~"));
  CHECK(is_plain_text("Knoten-\xC3\xA4 \xE8\x8A\x82\xE7\x82\xB9 \xF0\x9F\x98\x80"));
}

TEST_CASE("control characters are not plain") {
  for (int c = 0; c < 0x20; ++c) CHECK_FALSE(is_plain_text(std::string("a") + char(c) + "b"));
  CHECK_FALSE(is_plain_text("\x7F"));
  CHECK_FALSE(
      is_plain_text("\xC2\x9B"
                    "31m"));  // C1 control sequence introducer
  CHECK_FALSE(
      is_plain_text("a\xE2\x80\xA8"
                    "b"));  // line separator
  CHECK_FALSE(
      is_plain_text("a\xE2\x80\xA9"
                    "b"));  // paragraph separator
}

TEST_CASE("a character that turns the direction of text is not plain") {
  for (const char* turn : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202E", "\u2066", "\u2069"})
    CHECK(to_plain_text(std::string("w1") + turn + "x", 100) == "w1?x");
  for (const char* beside : {"\u200A", "\u2010", "\u2027", "\u202F", "\u205F", "\u2070"})
    CHECK(is_plain_text(beside));
}

TEST_CASE("an invisible character is not plain, and its neighbours are") {
  for (const char* hidden :
       {"\u00AD",     "\u034F",     "\u115F",     "\u1160",     "\u17B4",    "\u180E",
        "\u200B",     "\u200C",     "\u200D",     "\u2060",     "\u2065",    "\u206A",
        "\u3164",     "\uFE0F",     "\uFEFF",     "\uFFA0",     "\uFFF9",    "\uFFFB",
        "\U0001BCA0", "\U0001D173", "\U000E0001", "\U000E0041", "\U000E01EF"}) {
    CAPTURE(hidden);
    CHECK_FALSE(is_plain_text(std::string("w") + hidden + "1"));
  }
  for (const char* beside :
       {"\u00A0", "\u00AC", "\u00AE", "\u034E",     "\u0350",     "\u1161",    "\u17B3",
        "\u180A", "\u1810", "\u3163", "\u3165",     "\uFDFF",     "\uFE10",    "\uFEFE",
        "\uFF9F", "\uFFEF", "\uFFFD", "\U0001D172", "\U000DFFFF", "\U000E1000"}) {
    CAPTURE(beside);
    CHECK(is_plain_text(beside));
  }
}

TEST_CASE("broken UTF-8 is not plain") {
  CHECK_FALSE(is_plain_text("\x80"));              // continuation without a lead
  CHECK_FALSE(is_plain_text("\xC3"));              // lead without its continuation
  CHECK_FALSE(is_plain_text("\xC0\xAF"));          // overlong
  CHECK_FALSE(is_plain_text("\xED\xA0\x80"));      // surrogate
  CHECK_FALSE(is_plain_text("\xF4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(is_plain_text("\xFF"));
}

TEST_CASE("mended text is plain, keeps what was good and fits its bound") {
  CHECK(to_plain_text("good \xC3\xA4", 100) == "good \xC3\xA4");
  CHECK(to_plain_text("one\ntwo\x1B[31m", 100) == "one?two?[31m");
  CHECK(to_plain_text("a\xFF"
                      "b",
                      100) == "a?b");
  CHECK(to_plain_text("abc", 2) == "ab");
  CHECK(to_plain_text("a\xC3\xA4", 2) == "a");  // never half a character
  CHECK(to_plain_text("", 0).empty());
}

TEST_CASE("an error of a program is one line, and refused memory is named") {
  CHECK(one_line(std::bad_alloc()) == "out of memory");
  CHECK(one_line(std::bad_array_new_length()) == "out of memory");
  CHECK(one_line(std::runtime_error(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 "
            "GiB of which 3.75 MiB is free. Including non-PyTorch memory, this process has 79.09 "
            "GiB memory in use. See documentation (https://pytorch.org)\nframe #0")) ==
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB; "
        "a smaller batch or model needs less");
  CHECK(one_line(std::runtime_error(
            "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you "
            "tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)")) ==
        "out of memory: you tried to allocate 4000000000000 bytes; a smaller batch or model needs "
        "less");
  CHECK(one_line(std::runtime_error("wrong\u202E\nframe #0")) == "wrong\\xe2\\x80\\xae");
  for (const std::string why : {"eventfd_select_interrupter: Too many open files [system:24]",
                                "socket: Too many open files"})
    CHECK(one_line(std::runtime_error(why)) ==
          why + "; raise the limit of file descriptors (ulimit -n)");
}

TEST_CASE(
    "a thread that is refused is one line that names the limit, and signals stay as they were") {
  pthread_attr_t usual;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  pthread_attr_t too_large = usual;
  REQUIRE(pthread_attr_setstacksize(&too_large, std::size_t{1} << 46) == 0);
  REQUIRE(pthread_setattr_default_np(&too_large) == 0);
  std::string why;
  try {
    start_background_thread([] {}).join();
  } catch (const std::runtime_error& refused) {
    why = refused.what();
  }
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  CHECK(why ==
        "cannot start a thread: Resource temporarily unavailable; raise the limit of processes "
        "(ulimit -u), or pids.max of the control group");
  sigset_t blocked;
  REQUIRE(pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
  CHECK(sigismember(&blocked, SIGTERM) == 0);
}

TEST_CASE("a quoted text keeps what is plain and shows every other byte") {
  CHECK(one_line("").empty());
  CHECK(one_line("layer 1 \xC3\xA4 \xE8\x8A\x82") == "layer 1 \xC3\xA4 \xE8\x8A\x82");
  CHECK(one_line("a\nb\t\x7F") == "a\\x0ab\\x09\\x7f");
  CHECK(one_line("\u009B31m") == "\\xc2\\x9b31m");
  CHECK(one_line("w\u202E1") == "w\\xe2\\x80\\xae1");
  CHECK(one_line("w\u200B1") == "w\\xe2\\x80\\x8b1");
  CHECK(one_line("\xFF\xC3") == "\\xff\\xc3");
  CHECK(one_line(std::string_view("\0", 1)) == "\\x00");
}

}  // namespace
}  // namespace dpwa::wire

TEST_CASE("a number is the whole of a text and within its range, or there is none") {
  CHECK(number_in<std::uint16_t>("65535") == 65535);
  CHECK(number_in<std::int64_t>("-3") == -3);
  CHECK(number_in<double>("1.5e2") == 150);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "0x1", "65536", "-1"})
    CHECK_FALSE(number_in<std::uint16_t>(text));
}
