#include "dpwa/base/invariant.h"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "dpwa/base/item_range.h"
#include "dpwa/base/random.h"
#include "dpwa/base/thread_failure.h"
#include "test/support/broken_invariant.h"
#include "test/support/run_in_child.h"
#include "test/support/sanitized.h"

namespace dpwa {
namespace {

enum class Colour : std::uint8_t { red = 3 };

struct AtEnd {
  ~AtEnd() { std::fputs("a destructor ran\n", stderr); }
};

}  // namespace

TEST_CASE("an invariant that holds does nothing, and evaluates its condition once") {
  int evaluated = 0;
  CHECK(test::line_of_broken([&] {
          DPWA_INVARIANT(++evaluated == 1, "one plus one", evaluated);
        }).empty());
  CHECK(evaluated == 1);
}

TEST_CASE("the line of a broken invariant has its place, its words, the condition and the values") {
  const std::string line = test::line_of_broken([] {
    const std::uint64_t version = 3;
    const int by = -2;
    const std::string name = "w\n1";
    DPWA_INVARIANT(version > 4, "versions grow", version, by, Colour::red, 0.5, true, name,
                   std::string(name, 0, 1), by + 1);
  });
  CHECK(line.starts_with("broken invariant at dpwa/base/invariant_test.cpp:"));
  CHECK(
      line.ends_with(": versions grow: version > 4; version = 3, by = -2, Colour::red = 3, "
                     "0.5 = 0.5, true = 1, name = 'w 1', std::string(name, 0, 1) = 'w', "
                     "by + 1 = -1"));
}

TEST_CASE("a broken invariant ends the process with its own exit code and one line, at once") {
  const test::Ended child = test::run_in_child([] {
    name_last_lines("w1");
    const AtEnd at_end;
    const int left = 0;
    DPWA_INVARIANT(left > 0, "something is left", left);
    std::fputs("went on\n", stderr);
  });
  if (test::sanitized) {
    CHECK(child.signal == SIGABRT);
  } else {
    CHECK(child.exit_code == 70);
  }
  CHECK(child.errors.find(" on node 'w1': something is left: left > 0; left = 0\n") !=
        std::string::npos);
  CHECK(child.errors.find("went on") == std::string::npos);
  CHECK(child.errors.find("a destructor ran") == std::string::npos);
  // The log has it too.
  CHECK(child.errors.find("node: broken invariant at dpwa/") != std::string::npos);
}

TEST_CASE("a last line is cut off where it becomes too long, and has one newline") {
  LastLine line;
  line.add("a\nb").add(std::string(3000, 'x'));
  CHECK(line.text().size() <= 1024);
  CHECK(line.text().starts_with("a bxxx"));
  CHECK(line.text().find('\n') == line.text().size() - 1);
  CHECK(LastLine().text() == "\n");
}

TEST_CASE("a share of no parts, and a random number below nothing, are defects") {
  CHECK(test::breaks("a part of so many", [] { shard(10, 2, 2); }));
  CHECK(test::breaks("a random number is below something", [] { Random(1).below(0); }));
}

}  // namespace dpwa
