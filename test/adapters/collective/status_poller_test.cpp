#include "adapters/collective/status_poller.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "dpwa/net/local_process.h"

namespace dpwa::collective {
namespace {

using namespace std::chrono_literals;

// w1 looks at w2, w3 and w4 on a virtual clock; an answer takes 1 ms.
struct Looking {
  Config config = config_of(4);
  LocalProcess local{"test", "w1", 1, {"w2", "w3", "w4"}};
  NoticeBoard board{local.notes, 0, {}};
  AdaptiveTimeout patience{0s};
  TimePoint now{1h};
  std::map<std::size_t, StatusAnswer> answers;
  std::map<std::size_t, std::vector<TimePoint>> asked;
  StatusPoller poller{config,
                      local,
                      board,
                      patience,
                      [this](const std::vector<std::size_t>& places) { return ask(places); },
                      [this] { return now; }};

  static Config config_of(std::size_t nodes) {
    Config config;
    for (std::size_t place = 0; place < nodes; ++place) {
      NodeEntry node;
      node.name = "w" + std::to_string(place + 1);
      config.nodes.push_back(node);
    }
    config.self = "w1";
    return config;
  }

  std::vector<StatusAnswer> ask(const std::vector<std::size_t>& places) {
    std::vector<StatusAnswer> result;
    for (const std::size_t place : places) {
      asked[place].push_back(now);
      result.push_back(answers[place]);
    }
    now += 1ms;
    return result;
  }

  void answers_as(std::size_t place, const std::string& notes) {
    answers[place] = {config.nodes[place].name,
                      R"({"incarnation":7,"state":"joining","collective":)" + notes + "}", "",
                      false};
  }
  void refuses(std::size_t place) {
    answers[place] = {config.nodes[place].name, "", "connection refused", true};
  }
  void is_silent(std::size_t place) {
    answers[place] = {config.nodes[place].name, "", "no answer in time", false};
  }

  void look_for(Duration time) {
    for (const TimePoint end = now + time; now < end;) {
      now = std::max(now, poller.next_turn());
      poller.look();
    }
  }
  std::size_t asked_since(std::size_t place, TimePoint when) {
    return static_cast<std::size_t>(
        std::ranges::count_if(asked[place], [&](TimePoint time) { return time >= when; }));
  }
};

}  // namespace

TEST_CASE("nodes that wait with this one for a missing one are soon asked once a second") {
  Looking looking;
  looking.answers_as(1, R"({"seeks":true})");
  looking.answers_as(2, R"({"seeks":true})");
  looking.refuses(3);
  looking.look_for(10s);
  const TimePoint settled = looking.now;
  looking.look_for(60s);
  for (const std::size_t place : {1U, 2U, 3U}) {
    CAPTURE(place);
    CHECK(looking.asked_since(place, settled) >= 48);
    CHECK(looking.asked_since(place, settled) <= 80);
  }
}

TEST_CASE("news from one node lets the next look ask all") {
  Looking looking;
  for (const std::size_t place : {1U, 2U}) looking.answers_as(place, R"({"seeks":true})");
  looking.refuses(3);
  looking.look_for(20s);
  SUBCASE("a missing one has come") {
    looking.answers_as(3, R"({"seeks":true})");
  }
  SUBCASE("another one hosts the group") {
    looking.answers_as(1, R"({"seeks":true,"store_port":4711})");
  }
  const TimePoint changed = looking.now;
  looking.look_for(2s);
  for (const std::size_t place : {1U, 2U}) CHECK(looking.asked_since(place, changed) >= 8);
}

TEST_CASE("what a node notes while it trains is no news") {
  Looking looking;
  for (const std::size_t place : {1U, 2U, 3U}) looking.answers_as(place, R"({"seeks":true})");
  looking.look_for(20s);
  const TimePoint settled = looking.now;
  for (int second = 0; second < 20; ++second) {
    looking.answers_as(
        1, second % 2 == 0 ? R"({"seeks":true,"waits":true,"late":["w4"]})" : R"({"seeks":true})");
    looking.look_for(1s);
  }
  CHECK(looking.asked_since(2, settled) <= 30);
}

TEST_CASE("a silent node is asked ten times a second until it is given up, then once a second") {
  Looking looking;
  for (const std::size_t place : {1U, 2U}) looking.answers_as(place, R"({"seeks":true})");
  looking.is_silent(3);
  looking.look_for(1s);
  const TimePoint silent = looking.now;
  looking.look_for(500ms);
  CHECK(looking.asked_since(3, silent) >= 4);
  looking.look_for(40s);
  const TimePoint given_up = looking.now;
  looking.look_for(10s);
  CHECK(looking.asked_since(3, given_up) <= 11);
}

}  // namespace dpwa::collective
