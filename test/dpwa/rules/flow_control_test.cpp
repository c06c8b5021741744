#include "dpwa/rules/flow_control.h"

#include <doctest/doctest.h>

using dpwa::FlowControl;

TEST_CASE("the defaults are the constants of the original dpwa") {
  const FlowControl flow;
  CHECK(flow.initial == 1000);
  CHECK(flow.min == 10);
  CHECK(flow.max == 1000);
  CHECK(flow.on_success == 10);
  CHECK(flow.on_failure == -100);
}

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
