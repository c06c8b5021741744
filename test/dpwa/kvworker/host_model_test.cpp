#include "dpwa/kvworker/host_model.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa::kvstore {
namespace {

using Numbers = std::vector<float>;

Numbers numbers_in(std::span<const std::byte> bytes) {
  Numbers numbers(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// As servers send it, in two slices.
Slices slices_of(const Numbers& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  const auto first = bytes.first(sizeof(float)), rest = bytes.subspan(sizeof(float));
  return {std::make_shared<Bytes>(first.begin(), first.end()),
          std::make_shared<Bytes>(rest.begin(), rest.end())};
}

// Trained "a" and "b", frozen "c", buffers "mean" and "variance", and an integer.
struct Model {
  Manifest manifest{{{"a", DType::float32, BlendRule::interpolate, {2}},
                     {"mean", DType::float32, BlendRule::interpolate, {1}},
                     {"c", DType::float32, BlendRule::carry, {2}},
                     {"b", DType::float32, BlendRule::interpolate, {3}},
                     {"variance", DType::float32, BlendRule::interpolate, {2}},
                     {"steps", DType::int64, BlendRule::maximum, {}}}};
  AlignedBuffer memory{manifest.total_bytes()};
  HostModel own{manifest, memory.bytes(), {true, false, false, true, false, false}};

  void set(std::size_t tensor, const Numbers& numbers) {
    std::memcpy(&memory.bytes()[manifest.offset_of(tensor)], numbers.data(),
                numbers.size() * sizeof(float));
  }
  Numbers at(std::size_t tensor) {
    return numbers_in(
        memory.bytes().subspan(manifest.offset_of(tensor), manifest.tensors()[tensor].bytes()));
  }
};

}  // namespace

TEST_CASE("a model in host memory has its parameters, then its buffers, as values") {
  Model model;
  std::vector<std::string> names;
  for (const auto& value : model.own.values()) names.push_back(value.name);
  CHECK(names == std::vector<std::string>{"a", "c", "b", "(buffers float32)"});
  CHECK(model.own.trained() == std::vector<std::size_t>{0, 2});
  CHECK(model.own.values()[3].spec.shape == std::vector<std::uint64_t>{3});
}

TEST_CASE("values that come are written to the model, and changes are counted from them") {
  Model model;
  model.own.write(0, slices_of({1, 2}));
  model.own.write(3, slices_of({5, 6, 7}));
  CHECK(model.at(0) == Numbers{1, 2});
  CHECK(model.at(1) == Numbers{5});
  CHECK(model.at(4) == Numbers{6, 7});
  CHECK(numbers_in(model.own.value(3).bytes) == Numbers{5, 6, 7});
  model.set(4, {6.5, 4});
  CHECK(numbers_in(model.own.change(3).bytes) == Numbers{0, -0.5, 3});
  model.own.remember();
  model.set(0, {0, 4});
  CHECK(numbers_in(model.own.change(0).bytes) == Numbers{1, -2});
  CHECK_THROWS_AS(model.own.write(0, slices_of({1, 2, 3})), std::logic_error);
}

TEST_CASE("means come into the gradients of the program, or where it has none, are made") {
  Model model;
  Numbers gradient{1, 2};
  const auto set = [&] {
    model.own.set_gradient(0, reinterpret_cast<std::byte*>(gradient.data()));
    model.own.set_gradient(1, nullptr);
  };
  set();
  CHECK(model.own.has_gradient(0));
  CHECK(!model.own.has_gradient(1));
  CHECK(numbers_in(model.own.gradient(0).bytes) == gradient);
  std::vector<std::byte> place(12, std::byte{1});
  CHECK(!model.own.copy_gradient(1, place));
  CHECK(numbers_in(place) == Numbers{0, 0, 0});
  CHECK(!model.own.take_changes().are_means);

  model.own.take_mean(0, slices_of({3, 4}));
  model.own.take_mean(1, slices_of({7, 8, 9}));
  CHECK(gradient == Numbers{3, 4});
  auto changes = model.own.take_changes();
  CHECK(changes.are_means);
  CHECK(changes.made == std::vector<std::size_t>{1});
  CHECK(changes.dropped.empty());
  CHECK(numbers_in(model.own.made(1)) == Numbers{7, 8, 9});

  set();
  model.own.take_mean(1, place);
  model.own.drop_gradient(1);
  model.own.drop_gradient(0);
  changes = model.own.take_changes();
  CHECK(changes.made.empty());
  CHECK(changes.dropped == std::vector<std::size_t>{1, 0});
  CHECK(!model.own.has_gradient(0));
}

}  // namespace dpwa::kvstore
