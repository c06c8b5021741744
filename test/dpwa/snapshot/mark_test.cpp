#include "dpwa/snapshot/mark.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dpwa {
namespace {

TensorSpec tensor(std::string name, std::vector<std::uint64_t> shape, DType dtype = DType::float32,
                  BlendRule rule = BlendRule::interpolate) {
  return {std::move(name), dtype, rule, std::move(shape)};
}

const Manifest plain({tensor("w", {3, 3}), tensor("count", {}, DType::int64, BlendRule::maximum),
                      tensor("frozen", {5}, DType::float16, BlendRule::carry)});

std::string difference(const Manifest& a, const Manifest& b) {
  const std::string w1 = "w1", w2 = "w2";
  return first_difference({w1, a}, {w2, b}).value_or("none");
}

}  // namespace

TEST_CASE("a mark changes the fingerprint of a model, and no byte of its layout") {
  const Manifest marked = with_mark(plain, {"data", "60 rows"});
  CHECK(marked.fingerprint() != plain.fingerprint());
  CHECK(marked.total_bytes() == plain.total_bytes());
  CHECK(marked.exchange_bytes() == plain.exchange_bytes());
  REQUIRE(marked.regions().size() == plain.regions().size());
  for (std::size_t i = 0; i < plain.regions().size(); ++i) {
    CHECK(marked.regions()[i].offset == plain.regions()[i].offset);
    CHECK(marked.regions()[i].bytes == plain.regions()[i].bytes);
  }
  for (std::size_t i = 0; i < plain.tensors().size(); ++i)
    CHECK(marked.offset_of(i) == plain.offset_of(i));
  CHECK(mark_of(marked.tensors().back())->what == "data");
  CHECK(mark_of(marked.tensors().back())->value == "60 rows");
  CHECK_FALSE(mark_of(plain.tensors().back()));
}

TEST_CASE("marks that differ are named with the values of both nodes") {
  const Manifest rows = with_mark(plain, {"data", "60 rows"});
  CHECK(difference(rows, rows) == "none");
  CHECK(difference(rows, with_mark(plain, {"data", "61 rows"})) ==
        "data: 60 rows on 'w1' and 61 rows on 'w2'");
  CHECK(difference(plain, rows) == "data: not stated on 'w1' and 60 rows on 'w2'");
  CHECK(difference(rows, plain) == "data: 60 rows on 'w1' and not stated on 'w2'");
  const Manifest form = with_mark(plain, {"form", "natural"});
  CHECK(difference(rows, form) == "data: 60 rows on 'w1' and not stated on 'w2'");
  CHECK(difference(with_mark(rows, {"form", "natural"}), with_mark(rows, {"form", "usual"})) ==
        "form: natural on 'w1' and usual on 'w2'");
  // Tensors come first.
  const Manifest other({tensor("w", {3, 4})});
  CHECK(difference(rows, with_mark(other, {"data", "61 rows"})) ==
        "tensor 0 'w' is float32[3,3] on 'w1' and float32[3,4] on 'w2'");
}

TEST_CASE("settings change what a node states of its model, and not which models are alike") {
  const Manifest slow = with_mark(plain, setting_mark("--lr", "0.03"));
  const Manifest fast =
      with_mark(with_mark(plain, setting_mark("--lr", "0.1")), setting_mark("--seed", "2"));
  CHECK(plain.stated_fingerprint() == plain.fingerprint());
  CHECK(slow.fingerprint() == plain.fingerprint());
  CHECK(fast.fingerprint() == plain.fingerprint());
  CHECK(slow.stated_fingerprint() != plain.stated_fingerprint());
  CHECK(slow.stated_fingerprint() != fast.stated_fingerprint());
  CHECK(slow.total_bytes() == plain.total_bytes());
  CHECK(difference(slow, fast) == "none");
  const Manifest marked = with_mark(slow, {"data", "60 rows"});
  CHECK(difference(with_mark(fast, {"data", "61 rows"}), marked) ==
        "data: 61 rows on 'w1' and 60 rows on 'w2'");
  CHECK(marked.fingerprint() == with_mark(plain, {"data", "60 rows"}).fingerprint());

  CHECK(settings_of(plain).empty());
  CHECK(settings_of(marked) == Settings{{"--lr", "0.03"}});
  CHECK(marks_of(marked) == Settings{{"data", "60 rows"}});
}

TEST_CASE("long values differ by their hash, and a mark is given once, to a model with tensors") {
  const std::string value(1000, 'x');
  const Manifest a = with_mark(plain, {"data", value + "a"});
  const Manifest b = with_mark(plain, {"data", value + "b"});
  CHECK(a.fingerprint() != b.fingerprint());
  CHECK(with_mark(plain, {"data", "line\nend"}).tensors().size() == 4);
  CHECK_THROWS_AS(with_mark(a, {"data", "x"}), std::invalid_argument);
  CHECK_THROWS_AS(with_mark(Manifest(), {"data", "x"}), std::invalid_argument);
}

}  // namespace dpwa
