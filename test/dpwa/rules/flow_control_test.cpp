#include "dpwa/rules/flow_control.h"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace std::chrono_literals;
using dpwa::AnswerTime;
using dpwa::Duration;
using dpwa::FlowControl;

TEST_CASE("scores stay between the lowest and the highest") {
  const FlowControl flow;
  CHECK(flow.after_failure(1000) == 900);
  CHECK(flow.after_failure(50) == 10);
  CHECK(flow.after_success(500) == 510);
  CHECK(flow.after_success(995) == 1000);
}

TEST_CASE("time forgives a failure up to the initial score") {
  const FlowControl flow;
  CHECK(flow.after_time(900, 5) == 950);
  CHECK(flow.after_time(900, 60) == 1000);
  CHECK(flow.after_time(10, 0) == 10);
  CHECK(flow.after_time(10, -5) == 10);
}

TEST_CASE("time leaves what success earned above the initial score") {
  FlowControl flow;
  flow.initial = 500;
  CHECK(flow.after_time(700, 60) == 700);
  CHECK(flow.after_time(400, 60) == 500);
}

TEST_CASE("a recovery of zero forgives nothing") {
  FlowControl flow;
  flow.recovery_per_second = 0;
  CHECK(flow.after_time(10, 1e9) == 10);
}

namespace {

bool late(AnswerTime answer, std::vector<Duration> others) {
  return dpwa::is_late(answer, others);
}

AnswerTime snapshot_after(Duration took) {
  return {took, 800ms, true, false};
}

}  // namespace

TEST_CASE("an answer after half of the timeout is late, of whatever kind") {
  CHECK_FALSE(late(snapshot_after(400ms), {}));
  CHECK(late(snapshot_after(401ms), {}));
  CHECK(late({401ms, 800ms, false, false}, {}));  // a word that there is none
  CHECK(late({401ms, 800ms, true, true}, {}));    // from memory
}

TEST_CASE("an answer that takes over 8 times the others' median is late, of whatever kind") {
  CHECK(late(snapshot_after(90ms), {10ms, 11ms, 12ms}));
  CHECK_FALSE(late(snapshot_after(88ms), {10ms, 11ms, 12ms}));
  CHECK(late({90ms, 800ms, false, false}, {10ms, 11ms, 12ms}));  // a word that there is none
  CHECK_FALSE(late({90ms, 800ms, true, true}, {10ms, 11ms, 12ms}));
}

TEST_CASE("one other peer is no measure, and of two halves the slower one is") {
  CHECK_FALSE(late(snapshot_after(300ms), {1ms}));
  CHECK_FALSE(late(snapshot_after(300ms), {1ms, 280ms}));
  CHECK(late(snapshot_after(300ms), {1ms, 2ms}));
}

TEST_CASE("an answer in a sixteenth of the timeout is never late, however fast the others are") {
  CHECK_FALSE(late(snapshot_after(50ms), {10us, 10us, 10us}));
  CHECK(late(snapshot_after(51ms), {10us, 10us, 10us}));
}

TEST_CASE("without a timeout no answer is late") {
  CHECK_FALSE(late({1h, 0ms, true, false}, {1ms, 1ms}));
}

TEST_CASE("a late answer is slower than others where it took twice as long as their median") {
  const auto slower = [](Duration took, std::vector<Duration> others) {
    return dpwa::is_slower(snapshot_after(took), others);
  };
  CHECK_FALSE(slower(790ms, {}));
  CHECK(slower(500ms, {1ms}));
  CHECK_FALSE(slower(500ms, {250ms}));
  CHECK(slower(502ms, {250ms}));
  CHECK_FALSE(slower(500ms, {1ms, 300ms}));
  CHECK(slower(500ms, {1ms, 2ms, 300ms}));
}

TEST_CASE("the rest after a late answer doubles twice, and no further") {
  CHECK(dpwa::rest_after(100ms, 1) == 800ms);
  CHECK(dpwa::rest_after(100ms, 2) == 1600ms);
  CHECK(dpwa::rest_after(100ms, 3) == 3200ms);
  CHECK(dpwa::rest_after(100ms, 8) == 3200ms);
}
