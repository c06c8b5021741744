#include "dpwa/net/other_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "dpwa/snapshot/mark.h"

namespace dpwa {
namespace {

using Lines = std::vector<std::string>;

Manifest with_rate(const char* rate, std::uint64_t elements = 8) {
  const Manifest model({{"x", DType::float32, BlendRule::interpolate, {elements}}});
  return with_mark(model, setting_mark("--lr", rate));
}

}  // namespace

TEST_CASE("each caller with another setting is told of once, with both values") {
  const Manifest own = with_rate("0.03"), theirs = with_rate("0.1");
  OtherSettings others("w1", own);
  CHECK_FALSE(others.lines("w2", theirs.stated_fingerprint()));  // not known yet
  REQUIRE(others.learn(theirs));
  CHECK(others.lines("w2", theirs.stated_fingerprint()) ==
        Lines{"--lr: 0.03 on 'w1' and 0.1 on 'w2'; their models are blended all the same"});
  CHECK(others.lines("w2", theirs.stated_fingerprint()) == Lines{});
  CHECK(others.lines("w3", theirs.stated_fingerprint())->size() == 1);
  const Manifest later = with_rate("0.2");  // w2 was started again
  REQUIRE(others.learn(later));
  CHECK(others.lines("w2", later.stated_fingerprint())->size() == 1);
}

TEST_CASE("another model is not learnt, whatever its settings") {
  const Manifest own = with_rate("0.03"), theirs = with_rate("0.1", 9);
  OtherSettings others("w1", own);
  CHECK_FALSE(others.learn(theirs));
  CHECK_FALSE(others.lines("w2", theirs.stated_fingerprint()));
}

TEST_CASE("what callers state is remembered within bounds") {
  const Manifest own = with_rate("0.03");
  OtherSettings others("w1", own);
  Manifest many = with_rate("0.03");
  for (int i = 0; i < 100; ++i) many = with_mark(many, setting_mark("s" + std::to_string(i), "1"));
  REQUIRE(others.learn(many));
  CHECK(others.lines("w2", many.stated_fingerprint())->size() == 16);
  const Manifest first = with_rate("1000");
  REQUIRE(others.learn(first));
  for (int i = 0; i < 300; ++i) REQUIRE(others.learn(with_rate(std::to_string(i).c_str())));
  CHECK_FALSE(others.lines("w2", first.stated_fingerprint()));  // forgotten, and asked for again
}

}  // namespace dpwa
