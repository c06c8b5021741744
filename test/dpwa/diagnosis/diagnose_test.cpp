#include "dpwa/diagnosis/diagnose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/dpwa/diagnosis/generated_cluster.h"

namespace dpwa {
namespace {

using diagnosis::Cause;
using diagnosis::Finding;
using test::GeneratedCase;

bool names(const Finding& finding, const GeneratedCase::Fault& fault) {
  return finding.cause == fault.cause && finding.where.find(fault.where) != std::string::npos;
}

// Every fault is named at its place, and no cause that is not there.
bool is_right(const GeneratedCase& made, const std::vector<Finding>& findings) {
  const auto found = [&](const GeneratedCase::Fault& fault) {
    return std::ranges::any_of(findings, [&](const Finding& one) { return names(one, fault); });
  };
  const auto true_cause = [&](const Finding& finding) {
    return std::ranges::any_of(made.faults,
                               [&](const auto& fault) { return fault.cause == finding.cause; });
  };
  return std::ranges::all_of(made.faults, found) && std::ranges::all_of(findings, true_cause);
}

std::string words_for(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += "\n    " + finding.where + ": " + std::string(to_string(finding.cause)) + ", " +
            finding.evidence;
  return text;
}

// The share of the cases with these seeds that is judged right.
double right_share(std::uint64_t first_seed, unsigned cases, unsigned faults) {
  unsigned right = 0;
  for (unsigned i = 0; i < cases; ++i) {
    const GeneratedCase made = test::generate_case(first_seed + i, faults);
    const auto findings = diagnosis::diagnose(made.observations);
    if (is_right(made, findings)) {
      ++right;
    } else if (std::getenv("DPWA_SHOW_CASES") != nullptr) {
      MESSAGE("seed " << first_seed + i << ": " << made.description << words_for(findings));
    }
  }
  return static_cast<double>(right) / cases;
}

// DPWA_SEEDS=FIRST runs the cases of other seeds than those by which the rules were made.
std::uint64_t first_seed() {
  const char* const given = std::getenv("DPWA_SEEDS");
  return given == nullptr ? 1 : std::stoull(given);
}

// Nodes on one host that step together every 20 ms. `own`: seconds of a step without waits.
std::vector<Finding> in_step(const std::map<std::string, double>& own) {
  std::vector<diagnosis::Observation> observations;
  for (int second = 0; second <= 4; ++second) {
    diagnosis::Observation one;
    one.at_s = second;
    one.hosts["a"] = {.processors = 8, .busy_s = .1 * second, .idle_s = 7.9 * second};
    for (const auto& [name, own_s] : own) {
      diagnosis::Process& process = one.processes[name];
      process.connects = process.answers = process.trains = true;
      process.incarnation = 1;
      process.host = "a";
      process.steps = static_cast<std::uint64_t>(50 * second);
      process.compute_s = 50 * own_s * second;
      process.wait_s = 50 * (.02 - own_s) * second;
      process.cpu_s = process.main_cpu_s = .03 * second;
    }
    observations.push_back(std::move(one));
  }
  return diagnosis::diagnose(observations);
}

// Nodes that want more than the processors that they may use, beside a server that may use both.
std::vector<Finding> on_processors(const std::set<unsigned>& usable) {
  std::vector<diagnosis::Observation> observations;
  const auto count = static_cast<double>(usable.size());
  for (int second = 0; second <= 4; ++second) {
    diagnosis::Observation one;
    one.at_s = second;
    one.hosts["a"] = {.processors = 2, .busy_s = count * second, .idle_s = (2 - count) * second};
    for (const char* const name : {"w1", "w2", "w3", "w4"}) {
      diagnosis::Process& process = one.processes[name];
      process.connects = process.answers = process.trains = true;
      process.incarnation = 1;
      process.host = "a";
      process.processors = usable;
      process.steps = static_cast<std::uint64_t>(20 * second);
      process.compute_s = second;
      process.cpu_s = process.main_cpu_s = count / 4 * second;
      process.cpu_wait_s = process.main_cpu_wait_s = (1 - count / 4) * second;
    }
    diagnosis::Process& server = one.processes["s1"];
    server.connects = server.answers = server.is_server = true;
    server.incarnation = 1;
    server.host = "a";
    server.processors = {0, 1};
    server.cpu_s = .05 * second;
    observations.push_back(std::move(one));
  }
  return diagnosis::diagnose(observations);
}

// Four nodes of gossip on a host each, with 200 steps a second; `spoil` changes what they say.
template <class Spoil>
std::vector<Finding> four_nodes(const Spoil& spoil) {
  const std::vector<std::string> names{"w1", "w2", "w3", "w4"};
  std::vector<diagnosis::Observation> observations;
  for (int second = 0; second <= 4; ++second) {
    diagnosis::Observation one;
    one.at_s = second;
    for (std::size_t i = 0; i < names.size(); ++i) {
      diagnosis::Process& process = one.processes[names[i]];
      process.connects = process.answers = process.trains = true;
      process.incarnation = 1;
      process.host = names[i];
      process.steps = static_cast<std::uint64_t>(1000 + 200 * second);
      process.compute_s = process.cpu_s = process.main_cpu_s = 5 + second;
      process.loss = process.to_mean = 1;
      one.hosts[names[i]] = {.processors = 2, .busy_s = 1. * second, .idle_s = 1. * second};
      for (std::size_t j = 0; j < names.size(); ++j) {
        if (i == j) continue;
        process.peers[names[j]].ok = static_cast<std::uint64_t>(60 * second);
        diagnosis::Connection wire;
        wire.own_port = static_cast<std::uint16_t>(100 + 10 * i + j);
        wire.port = static_cast<std::uint16_t>(100 + 10 * j + i);
        wire.rtt_ms = 0.5;
        wire.rtt_deviation_ms = 0.2;
        wire.segments = static_cast<std::uint64_t>(100 + 1000 * second);
        wire.bytes_sent = 1400 * wire.segments;
        process.connections.push_back(wire);
      }
    }
    spoil(one, second);
    observations.push_back(std::move(one));
  }
  return diagnosis::diagnose(observations);
}

// The connection of a node to another one; by their numbers.
diagnosis::Connection& wire_of(diagnosis::Observation& one, int from, int to) {
  auto& wires = one.processes["w" + std::to_string(from)].connections;
  return wires[static_cast<std::size_t>(to < from ? to - 1 : to - 2)];
}

// A link of which both ends know by earlier use alone that it takes long.
std::vector<Finding> rarely_used(bool one_rests, bool other_rests) {
  return four_nodes([&](diagnosis::Observation& one, int) {
    for (auto* wire : {&wire_of(one, 1, 2), &wire_of(one, 2, 1)}) {
      wire->rtt_ms = 40;
      wire->rtt_deviation_ms = 10;
      wire->segments = 100;
      wire->bytes_sent = 140'000;
    }
    one.processes["w1"].peers["w2"].rests = one_rests;
    one.processes["w2"].peers["w1"].rests = other_rests;
  });
}

// w1 has a higher loss than the others, and lies far from their mean: on one side of it, or in
// every second elsewhere.
std::vector<Finding> far_away(bool on_one_side) {
  return four_nodes([&](diagnosis::Observation& one, int second) {
    for (auto& [name, process] : one.processes) process.sketch.assign(8, 1 + second);
    diagnosis::Process& other = one.processes["w1"];
    other.loss = 4;
    other.to_mean = 2.5;
    other.sketch[on_one_side ? 0 : static_cast<std::size_t>(second)] += 5;
  });
}

}  // namespace

TEST_CASE("a slow link that both ends use rarely, since it is slow, is found") {
  CHECK(four_nodes([](auto&, int) {}).empty());
  const auto findings = rarely_used(true, true);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause == Cause::slow_link);
  CHECK(findings[0].where == "w1 - w2");
  CHECK(rarely_used(true, false).empty());  // then w2 itself is late
  CHECK(rarely_used(false, false).empty());
}

TEST_CASE("processes of one host have no slow link between them") {
  CHECK(four_nodes([](diagnosis::Observation& one, int) {
          for (auto* wire : {&wire_of(one, 1, 2), &wire_of(one, 2, 1)}) {
            wire->rtt_ms = 40;
            wire->rtt_deviation_ms = 10;
          }
          one.processes["w1"].host = "w2";
        }).empty());
}

TEST_CASE("acknowledgements that wait for answers make no link slow") {
  const auto findings_with = [](double deviation_ms) {
    return four_nodes([&](diagnosis::Observation& one, int) {
      wire_of(one, 1, 2).rtt_ms = 12;
      wire_of(one, 1, 2).rtt_deviation_ms = deviation_ms;
    });
  };
  CHECK(findings_with(15).empty());
  REQUIRE(findings_with(1).size() == 1);
  CHECK(findings_with(1)[0].cause == Cause::slow_link);
}

TEST_CASE("data pull a model one way, and large steps throw it every way") {
  REQUIRE(far_away(true).size() == 1);
  CHECK(far_away(true)[0].cause == Cause::skewed_data);
  REQUIRE(far_away(false).size() == 1);
  CHECK(far_away(false)[0].cause == Cause::other_steps);
}

TEST_CASE("one answer that is lost hides nothing that the others show") {
  const auto findings = four_nodes([](diagnosis::Observation& one, int second) {
    one.processes["w1"].loss = 4;
    if (second == 2) one.processes["w1"].answers = false;
    if (second == 3) one.processes["w3"].answers = false;
  });
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause == Cause::skewed_data);
}

TEST_CASE("a node that has left in order is not missed") {
  const auto findings_where = [](bool left) {
    return four_nodes([&](diagnosis::Observation& one, int) {
      one.processes["w4"] = {};
      one.processes["w4"].nobody_listens = true;
      one.processes["w4"].left = left;
    });
  };
  CHECK(findings_where(true).empty());
  REQUIRE(findings_where(false).size() == 1);
  CHECK(findings_where(false)[0].cause == Cause::gone);
}

TEST_CASE("a node that starves is found beside one that all wait for") {
  const auto findings = four_nodes([](diagnosis::Observation& one, int second) {
    for (auto& [name, process] : one.processes) {
      process.steps = static_cast<std::uint64_t>(1000 + 7 * second);
      process.compute_s = process.main_cpu_s = process.cpu_s = .3 * second;
      process.wait_s = .7 * second;
    }
    one.processes["w1"].main_cpu_wait_s = one.processes["w1"].cpu_wait_s = .09 * second;
    one.hosts["w1"].busy_s = 2. * second;
    one.hosts["w1"].idle_s = 0;
  });
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause == Cause::other_programs);
  CHECK(findings[0].where == "w1");
}

TEST_CASE("nodes that may use one of two processors are limited, and those on both too many") {
  const auto pinned = on_processors({1});
  REQUIRE(pinned.size() == 1);
  CHECK(pinned[0].cause == Cause::limited_cpu);
  CHECK(pinned[0].where == "w1, w2, w3, w4");
  CHECK(pinned[0].evidence.ends_with("they may use 1 of 2 processors"));
  const auto crowded = on_processors({0, 1});
  REQUIRE(crowded.size() == 1);
  CHECK(crowded[0].cause == Cause::crowded_host);
}

TEST_CASE(
    "the one of several nodes in step that the others wait for is slow, and waits itself not") {
  const auto findings = in_step({{"w1", .019}, {"w2", .006}, {"w3", .006}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause == Cause::slow_program);
  CHECK(findings[0].where == "w1");
  CHECK(in_step({{"w1", .009}, {"w2", .003}, {"w3", .003}}).empty());  // fills its steps up
}

TEST_CASE("nothing is wrong in a healthy cluster") {
  const double share = right_share(first_seed(), 1000, 0);
  MESSAGE("healthy: " << share);
  CHECK(share >= 0.998);
}

TEST_CASE("one cause is named at its place, and no other") {
  const double share = right_share(first_seed(), 1000, 1);
  MESSAGE("one cause: " << share);
  CHECK(share >= 0.99);
}

TEST_CASE("two causes at once are both named") {
  const double share = right_share(first_seed(), 1000, 2);
  MESSAGE("two causes: " << share);
  CHECK(share >= 0.98);
}

TEST_CASE("one observation shows nothing, and none neither") {
  const auto made = test::generate_case(1, 1);
  CHECK(diagnosis::diagnose({}).empty());
  CHECK(diagnosis::diagnose({made.observations.data(), 1}).empty());
}

TEST_CASE("a process that was started again is judged from there on") {
  auto made = test::generate_case(2, 0);
  for (std::size_t i = 3; i < made.observations.size(); ++i) {
    for (auto& [name, process] : made.observations[i].processes) {
      process.incarnation = 8;
      process.steps -= 200;
    }
  }
  CHECK(diagnosis::diagnose(made.observations).empty());
}

}  // namespace dpwa
