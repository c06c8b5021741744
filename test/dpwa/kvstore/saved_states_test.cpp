#include "dpwa/kvstore/saved_states.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace dpwa::kvstore {
namespace {

// After `steps` steps with gradient `i` at element i of the value.
SavedRange trained(const OptimizerOptions& options, const Key& key, const ItemRange& range,
                   int steps) {
  std::vector<float> values(range.count), gradient(range.count);
  for (std::size_t i = 0; i < range.count; ++i) gradient[i] = static_cast<float>(range.from + i);
  SavedRange saved{key, DType::float32, range, {}};
  for (int step = 0; step < steps; ++step) {
    apply_update(options, DType::float32, std::as_writable_bytes(std::span(values)),
                 std::as_bytes(std::span(gradient)), 1, saved.state);
  }
  return saved;
}

bool same(const OptimizerState& a, const OptimizerState& b) {
  return a.steps() == b.steps() && std::ranges::equal(a.bytes(), b.bytes());
}

SavedStates some_states() {
  SavedStates states;
  states.options = default_options(OptimizerKind::adam);
  states.ranges.push_back(trained(states.options, "fc1.weight", {0, 10}, 2));
  states.ranges.push_back(trained(states.options, "fc1.weight", {10, 7}, 2));
  states.ranges.push_back(trained(states.options, "fc1.bias", {0, 1}, 3));
  return states;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  const auto decoded = decode_states(bytes);
  const auto* const error = std::get_if<std::string>(&decoded);
  return error ? *error : "";
}

TEST_CASE("saved states: a file gives back options, keys, steps and arrays") {
  SavedStates states = some_states();
  const auto decoded = decode_states(encode(states));
  REQUIRE(std::holds_alternative<SavedStates>(decoded));
  const auto& read = std::get<SavedStates>(decoded);
  CHECK(read.options == states.options);
  REQUIRE(read.ranges.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read.ranges[i].key == states.ranges[i].key);
    CHECK(read.ranges[i].elements.from == states.ranges[i].elements.from);
    CHECK(same(read.ranges[i].state, states.ranges[i].state));
  }
  states.ranges = {trained(states.options, -3, {0, 2}, 1)};
  const auto integers = decode_states(encode(states));
  REQUIRE(std::holds_alternative<SavedStates>(integers));
  CHECK(std::get<SavedStates>(integers).ranges.at(0).key == Key(-3));
}

TEST_CASE("saved states: another cut of a key gets the same elements") {
  const SavedStates states = some_states();
  const SavedRange whole = trained(states.options, "fc1.weight", {0, 17}, 2);
  CHECK(same(state_of_range(states, "fc1.weight", DType::float32, {0, 17}), whole.state));
  const SavedRange part = trained(states.options, "fc1.weight", {6, 9}, 2);
  CHECK(same(state_of_range(states, "fc1.weight", DType::float32, {6, 9}), part.state));
  const OptimizerState none = state_of_range(states, "new", DType::float32, {0, 4});
  CHECK(same(none, OptimizerState(states.options, DType::float32, 4)));
  CHECK_THROWS_WITH_AS(state_of_range(states, "fc1.bias", DType::float64, {0, 1}),
                       "the saved state of key 'fc1.bias' is that of float32, the value is float64",
                       std::invalid_argument);
}

TEST_CASE("saved states: a damaged, cut or foreign file is refused in words") {
  const std::vector<std::byte> good = encode(some_states());
  CHECK(error_of(good).empty());
  CHECK(error_of({}) == "is no file of optimizer states");
  CHECK(error_of(std::vector<std::byte>(200)) == "is no file of optimizer states");
  for (std::size_t size = 8; size < good.size(); ++size)
    CHECK_FALSE(error_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}).empty());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{4};
    CHECK_FALSE(error_of(bad).empty());
  }
  std::vector<std::byte> bad = good;
  bad[8] = std::byte{2};
  CHECK(error_of(bad) == "has version 2; accepted: 1");
}

}  // namespace
}  // namespace dpwa::kvstore
