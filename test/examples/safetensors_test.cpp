#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "examples/train/saved_model.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using namespace dpwa::train;

TEST_CASE("a safetensors file has its header, then the tensors without gaps, each one aligned") {
  const test::TemporaryDirectory directory;
  const auto file = directory / "m.safetensors";
  torch::OrderedDict<std::string, torch::Tensor> tensors;
  tensors.insert("layer.weight",
                 torch::arange(1, 7, torch::kFloat).reshape({2, 3}).t().contiguous().t());
  tensors.insert("flags", torch::tensor({1, 0, 1}).to(torch::kBool));
  tensors.insert("none", torch::zeros({0, 5}));
  tensors.insert("count", torch::full({}, 7, torch::kLong));
  write_safetensors(file, tensors, {{"node", "w1"}, {"odd", "\"quoted\"\n"}});
  const std::string text = test::read_text(file);
  std::uint64_t size = 0;
  REQUIRE(text.size() > sizeof size);
  std::memcpy(&size, text.data(), sizeof size);
  CHECK(size % 8 == 0);
  const std::int64_t count = 7;
  const float weight[] = {1, 2, 3, 4, 5, 6};
  REQUIRE(text.size() == 8 + size + sizeof count + sizeof weight + 3);
  const char* const data = text.data() + 8 + size;
  CHECK(std::memcmp(data, &count, sizeof count) == 0);
  CHECK(std::memcmp(data + sizeof count, weight, sizeof weight) == 0);
  CHECK(text.ends_with(std::string("\1\0\1", 3)));
  const auto header = nlohmann::json::parse(text.substr(8, size));
  CHECK(header == nlohmann::json::parse(R"({
    "__metadata__": {"node": "w1", "odd": "\"quoted\"\n"},
    "count": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
    "layer.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
    "none": {"dtype": "F32", "shape": [0, 5], "data_offsets": [32, 32]},
    "flags": {"dtype": "BOOL", "shape": [3], "data_offsets": [32, 35]}})"));
  CHECK((std::filesystem::status(file).permissions() == std::filesystem::perms(0600)));
}
