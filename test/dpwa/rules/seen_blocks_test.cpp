#include "dpwa/rules/seen_blocks.h"

#include <doctest/doctest.h>

namespace dpwa {
namespace {

TEST_CASE("a version is known for the blocks taken from it and for no other") {
  SeenBlocks seen;
  CHECK(seen.known_version(7, 0) == 0);
  seen.took(7, 3, 1);
  CHECK(seen.known_version(7, 1) == 3);
  CHECK(seen.known_version(7, 0) == 0);
  seen.took(7, 3, 63);
  CHECK(seen.known_version(7, 1) == 3);
  CHECK(seen.known_version(7, 63) == 3);
}

TEST_CASE("a newer version forgets the blocks of the one before") {
  SeenBlocks seen;
  seen.took(7, 3, 1);
  seen.took(7, 4, 2);
  CHECK(seen.known_version(7, 1) == 0);
  CHECK(seen.known_version(7, 2) == 4);
}

TEST_CASE("a whole model counts for every block") {
  SeenBlocks seen;
  seen.took_all(7, 5);
  CHECK(seen.known_version(7, 0) == 5);
  CHECK(seen.known_version(7, 63) == 5);
}

TEST_CASE("versions of an earlier life of the peer mean nothing") {
  SeenBlocks seen;
  seen.took_all(7, 5);
  CHECK(seen.known_version(8, 0) == 0);
  seen.took(8, 5, 0);
  CHECK(seen.known_version(8, 1) == 0);
  CHECK(seen.known_version(7, 0) == 0);
}

TEST_CASE("a version already taken, or an older one of the same process, is a repetition") {
  SeenBlocks seen;
  CHECK_FALSE(seen.repeats(7, 3, 0));
  seen.took(7, 3, 1);
  CHECK(seen.repeats(7, 3, 1));
  CHECK_FALSE(seen.repeats(7, 3, 0));
  CHECK(seen.repeats(7, 2, 0));
  CHECK_FALSE(seen.repeats(7, 4, 1));
  CHECK_FALSE(seen.repeats(8, 1, 1));
  CHECK_FALSE(seen.repeats(6, 1, 1));  // its wall clock was set back
}

}  // namespace
}  // namespace dpwa
