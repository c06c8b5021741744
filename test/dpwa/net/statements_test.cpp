#include "dpwa/net/statements.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace dpwa {
namespace {

std::map<std::string, std::uint16_t> take(Statements& statements) {
  std::map<std::string, std::uint16_t> heard;
  statements.take([&heard](const std::string& peer, Statements::Statement statement) {
    heard[peer] = statement.taken;
  });
  return heard;
}

}  // namespace

TEST_CASE("the last statement of each peer is heard, once") {
  Statements statements;
  statements.put("w1", {.incarnation = 1, .taken = 10});
  statements.put("w2", {.incarnation = 1, .taken = 20});
  statements.put("w1", {.incarnation = 1, .taken = 30});
  CHECK(take(statements) == std::map<std::string, std::uint16_t>{{"w1", 30}, {"w2", 20}});
  CHECK(take(statements).empty());
}

TEST_CASE("of more peers than there is room for, the others are heard later") {
  Statements statements;
  for (std::size_t i = 0; i < Statements::max_names; ++i)
    statements.put("w" + std::to_string(i), {.incarnation = 1, .taken = 1});
  statements.put("late", {.incarnation = 1, .taken = 2});
  CHECK(take(statements).size() == Statements::max_names);
  statements.put("late", {.incarnation = 1, .taken = 3});
  CHECK(take(statements) == std::map<std::string, std::uint16_t>{{"late", 3}});
}

}  // namespace dpwa
