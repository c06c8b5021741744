#include "dpwa/net/greetings.h"

#include <doctest/doctest.h>

#include "test/dpwa/net/pulling_node.h"
#include "test/support/eventually.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::PullingNode;

}  // namespace

TEST_CASE("the wait for greetings ends with the last of their work, however that ends") {
  const auto greetings = std::make_shared<Greetings>(2);
  auto work = Greetings::begin(greetings);
  auto more = work;
  Greeted answer;
  answer.asked = true;
  work->put(1, answer);
  work->put(7, answer);  // of a peer that came later
  work.reset();
  more.reset();  // lost, without an answer
  const auto answers = greetings->wait(test::patience);
  REQUIRE(answers.size() == 2);
  CHECK_FALSE(answers[0].asked);
  CHECK(answers[1].asked);
}

TEST_CASE("the wait for greetings is bounded, and what comes later changes nothing") {
  const auto greetings = std::make_shared<Greetings>(1);
  const auto work = Greetings::begin(greetings);
  const auto answers = greetings->wait(1ms);
  work->put(0, {});
  CHECK_FALSE(answers.at(0).asked);
}

TEST_CASE("a stopped client greets no peer and returns at once") {
  PullingNode node({{"w1", {"127.0.0.1"}, 1}});
  node.stop();
  const auto greeted = node.client().greet_all(std::chrono::hours(1));
  REQUIRE(greeted.size() == 1);
  CHECK_FALSE(greeted[0].asked);
}

}  // namespace dpwa
