#include "dpwa/base/threads.h"

#include <doctest/doctest.h>

using namespace dpwa;

TEST_CASE("this machine has at least one processor, each listed once in ascending order") {
  const std::vector<int> processors = usable_processors();
  REQUIRE_FALSE(processors.empty());
  for (std::size_t i = 1; i < processors.size(); ++i) CHECK(processors[i - 1] < processors[i]);
}
