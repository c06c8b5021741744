#include "dpwa/kvstore/slices.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace dpwa::kvstore {
namespace {

TEST_CASE("slices: a key below the bound is one slice on the server of its hash") {
  for (const std::uint64_t elements :
       {std::uint64_t{0}, std::uint64_t{1}, large_key_elements - 1}) {
    const std::vector<Slice> slices = cut_into_slices("fc1.weight", elements, 3);
    const auto server = static_cast<std::uint32_t>(Key("fc1.weight").hash() % 3);
    CHECK(slices == std::vector<Slice>{{server, {0, elements}}});
  }
}

TEST_CASE("slices: small keys spread over the servers") {
  for (const bool numbers : {true, false}) {
    std::vector<int> keys(4);
    for (int i = 0; i < 400; ++i) {
      const Key key = numbers ? Key(i) : Key("layer" + std::to_string(i) + ".weight");
      ++keys[cut_into_slices(key, 10, 4).front().server];
    }
    for (const int on_one : keys) CHECK(on_one > 60);
  }
}

TEST_CASE("slices: a large key lies evenly on all servers, in aligned slices without gaps") {
  for (const std::uint64_t elements : {large_key_elements, large_key_elements + 1,
                                       std::uint64_t{25'000'000}, std::uint64_t{12'345'677}}) {
    for (const std::uint32_t servers : {1u, 2u, 3u, 7u}) {
      const std::vector<Slice> slices = cut_into_slices(0, elements, servers);
      std::vector<std::uint64_t> on_server(servers);
      std::uint64_t end = 0;
      std::uint32_t last_server = 0;
      for (const Slice& slice : slices) {
        CHECK(slice.elements.from == end);
        CHECK(end % slice_alignment == 0);
        CHECK(slice.elements.count > 0);
        CHECK(slice.elements.count <= slice_elements);
        CHECK(slice.server >= last_server);
        last_server = slice.server;
        end = slice.elements.end();
        on_server.at(slice.server) += slice.elements.count;
      }
      CHECK(end == elements);
      const auto [least, most] = std::ranges::minmax(on_server);
      CHECK(most - least < 2 * slice_alignment);
    }
  }
}

TEST_CASE("slices: the slices of 2,000,000 elements on two servers") {
  const std::vector<Slice> expected = {
      {0, {0, 262'144}},         {0, {262'144, 262'144}},   {0, {524'288, 262'144}},
      {0, {786'432, 213'568}},   {1, {1'000'000, 262'144}}, {1, {1'262'144, 262'144}},
      {1, {1'524'288, 262'144}}, {1, {1'786'432, 213'568}},
  };
  CHECK(cut_into_slices("big", 2'000'000, 2) == expected);
}

}  // namespace
}  // namespace dpwa::kvstore
