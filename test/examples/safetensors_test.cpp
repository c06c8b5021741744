#include "examples/train/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;

namespace {

template <class Number>
std::string bytes_of(std::initializer_list<Number> numbers) {
  std::string bytes;
  for (const Number number : numbers) {
    char one[sizeof(Number)];
    std::memcpy(one, &number, sizeof one);
    bytes.append(one, sizeof one);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a safetensors file has its header, then the tensors without gaps, each one aligned") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.safetensors";
  const std::string weight = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const std::string count = bytes_of<std::int64_t>({7});
  const std::string flags("\1\0\1", 3);
  write_safetensors(file,
                    {{"layer.weight", "F32", 4, {2, 3}, weight},
                     {"flags", "BOOL", 1, {3}, flags},
                     {"none", "F32", 4, {0, 5}, {}},
                     {"count", "I64", 8, {}, count}},
                    {{"node", "w1"}, {"odd", "\"quoted\"\n"}});
  const std::string text = test::read_text(file);
  std::uint64_t size = 0;
  REQUIRE(text.size() > sizeof size);
  std::memcpy(&size, text.data(), sizeof size);
  CHECK(size % 8 == 0);
  REQUIRE(text.size() == 8 + size + weight.size() + count.size() + flags.size());
  CHECK(text.substr(8 + size) == count + weight + flags);
  const auto header = nlohmann::json::parse(text.substr(8, size));
  CHECK(header == nlohmann::json::parse(R"({
    "__metadata__": {"node": "w1", "odd": "\"quoted\"\n"},
    "count": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
    "layer.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
    "none": {"dtype": "F32", "shape": [0, 5], "data_offsets": [32, 32]},
    "flags": {"dtype": "BOOL", "shape": [3], "data_offsets": [32, 35]}})"));
  CHECK((std::filesystem::status(file).permissions() == std::filesystem::perms(0600)));
}
