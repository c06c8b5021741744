#include "examples/train/idx.h"

#include <doctest/doctest.h>

#include "test/examples/error_text.h"

using namespace dpwa;
using Bytes = std::vector<std::uint8_t>;

namespace {

const Bytes good{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

std::string refusal(const Bytes& bytes) {
  return test::usage_error_of([&] { train::parse_idx(bytes, "the-file"); });
}

}  // namespace

TEST_CASE("an IDX file gives its dimensions and elements") {
  const auto tensor = train::parse_idx(good, "the-file");
  CHECK(tensor.dimensions == std::vector<std::size_t>{2, 3});
  CHECK(tensor.elements == Bytes{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a broken IDX file is refused in one line naming the file and what is wrong") {
  Bytes bytes = good;
  std::string expected;
  SUBCASE("empty") {
    bytes.clear(), expected = "shorter than its header";
  }
  SUBCASE("ends in the header") {
    bytes.resize(9), expected = "shorter than its header";
  }
  SUBCASE("wrong magic") {
    bytes[1] = 1, expected = "two zero bytes";
  }
  SUBCASE("floats") {
    bytes[2] = 0x0D, expected = "element type 13; accepted: 8";
  }
  SUBCASE("no dimension") {
    bytes[3] = 0, expected = "0 dimensions; accepted: 1 to 4";
  }
  SUBCASE("too many dimensions") {
    bytes[3] = 5, expected = "5 dimensions";
  }
  SUBCASE("an empty dimension") {
    bytes[7] = 0, expected = "a dimension is 0";
  }
  SUBCASE("truncated") {
    bytes.pop_back(), expected = "announces 6 elements, it holds 5";
  }
  SUBCASE("oversized") {
    bytes.push_back(0), expected = "announces 6 elements, it holds 7";
  }
  SUBCASE("a size that would overflow") {
    for (const std::size_t at : {4, 5, 6, 7, 8, 9, 10, 11}) bytes[at] = 0xFF;
    expected = "too many elements";
  }
  const std::string why = refusal(bytes);
  CAPTURE(why);
  CHECK(test::has(why, "the-file: "));
  CHECK(test::has(why, expected));
  CHECK_FALSE(test::has(why, "\n"));
}

TEST_CASE("an IDX file cut at any byte is refused, never read beyond its end") {
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(refusal(cut).empty());
  }
}
