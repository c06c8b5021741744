#include "dpwa/attach/protocol.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace dpwa::attach {

using nlohmann::json;

TEST_CASE("another version of the attach protocol is told in one line") {
  CHECK(version_problem({{"version", protocol_version}}, "the trainer").empty());
  CHECK(version_problem(json::object(), "the trainer") ==
        "the trainer speaks version 1 of the attach protocol, this process version 2; run the same "
        "release of dpwa on both sides");
}

TEST_CASE("nodes of one host listen under names of their own") {
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w2", 1));
  CHECK(socket_name("c", "w1", 1) != socket_name("c", "w1", 2));
  CHECK(socket_name("a", "bc", 1) != socket_name("ab", "c", 1));
  CHECK(socket_name(std::string(255, 'c'), std::string(255, 'n'), 65535).size() < 100);
}

TEST_CASE("a second node process of a name is told that there is one") {
  const std::string name = socket_name("protocol_test", std::to_string(::getpid()), 1);
  const FileDescriptor listener = listen_for_trainers(name);
  CHECK_THROWS_WITH_AS(listen_for_trainers(name), "a node process of that name runs already",
                       std::runtime_error);
}

TEST_CASE("a report comes through as it was") {
  StepReport sent;
  sent.outcome = Outcome::mixed;
  sent.peer = "w2";
  sent.factor = 0.1;
  sent.staleness = -1.0 / 3;
  sent.bytes = (std::uint64_t{1} << 53) + 1;
  sent.waited = std::chrono::nanoseconds(5);
  sent.clock = 1e15 + 0.5;
  sent.distance = std::numeric_limits<double>::denorm_min();
  sent.clipped = true;
  sent.refused = 2;
  sent.block = 3;
  sent.blocks = 4;
  sent.same_host = true;
  sent.pulls_ok = 5;
  sent.pulls_failed = 6;
  const StepReport came = step_report_in(json::parse(to_json(sent).dump()));
  CHECK(came.outcome == sent.outcome);
  CHECK(came.peer == sent.peer);
  CHECK(came.factor == sent.factor);
  CHECK(came.staleness == sent.staleness);
  CHECK(came.bytes == sent.bytes);
  CHECK(came.waited == sent.waited);
  CHECK(came.clock == sent.clock);
  CHECK(came.distance == sent.distance);
  CHECK(came.clipped);
  CHECK(came.refused == 2);
  CHECK(came.block == 3);
  CHECK(came.blocks == 4);
  CHECK(came.same_host);
  CHECK(came.pulls_ok == 5);
  CHECK(came.pulls_failed == 6);
}

TEST_CASE("the end and the state of a node come through as they were") {
  const FinishReport finish =
      finish_report_in(json::parse(to_json(FinishReport{true, 3, 0.25, false}).dump()));
  CHECK(finish.averaged);
  CHECK(finish.participants == 3);
  CHECK(finish.distance_to_average == 0.25);
  CHECK_FALSE(finish.enough);
  const std::uint64_t large = ~std::uint64_t{0};
  const GossipState state =
      resume_state_in(json::parse(to_json(GossipState{0.1, large, 7}).dump()));
  CHECK(state.clock == 0.1);
  CHECK(state.lineage == large);
  CHECK(state.incarnation == 7);
}

TEST_CASE("numbers that are not finite travel as none") {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(std::isnan(number_in(json::parse(number(value).dump()))));
}

TEST_CASE("a message that lacks a field or has another type is refused") {
  json text = to_json(StepReport{});
  text["bytes"] = "many";
  CHECK_THROWS_AS(step_report_in(text), json::exception);
  CHECK_THROWS_AS(step_report_in(json::object()), json::exception);
  CHECK_THROWS_AS(resume_state_in(json(nullptr)), json::exception);
}

}  // namespace dpwa::attach
