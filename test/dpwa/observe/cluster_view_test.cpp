#include "dpwa/observe/cluster_view.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dpwa {

namespace {

using observe::ClusterStatus;
using observe::Json;
using observe::NodeStatus;

NodeStatus node(const std::string& name, const std::string& document) {
  Json parsed = Json::parse(document);
  parsed["node"] = name;
  return {name, "h:1", "alive", "", std::move(parsed)};
}

ClusterStatus cluster(std::vector<NodeStatus> nodes) {
  return {std::move(nodes), {}};
}

std::vector<std::string> words(const ClusterStatus& before, const ClusterStatus& now) {
  std::vector<std::string> all;
  for (const auto& change : observe::changes(before, now))
    all.push_back((change.is_bad ? "! " : "") + change.process + ' ' + change.words);
  return all;
}

}  // namespace

TEST_CASE("what changes between two looks is said once, and the first look says nothing") {
  const auto w1 = node("w1", R"({"state": "joining", "incarnation": 5})");
  const auto before = cluster({w1, node("w2", R"({"state": "training"})")});
  CHECK(words({}, before).empty());
  CHECK(words(before, before).empty());
  NodeStatus absent = node("w2", "{}");
  absent.error = "Connection refused";
  absent.member = "suspect";
  const auto now = cluster({node("w1", R"({"state": "training", "incarnation": 6})"), absent,
                            node("w3", R"({"state": "joining"})")});
  CHECK(words(before, now) ==
        std::vector<std::string>{"w1 was started again", "! w2 no answer: Connection refused",
                                 "! w2 is suspect for the others", "w3 joined at h:1"});
  CHECK(words(now, before) == std::vector<std::string>{"w1 was started again", "w2 answers",
                                                       "w2 is alive for the others",
                                                       "! w3 is gone"});
}

TEST_CASE("a view has rates over the last seconds, and recent pulls of pairs") {
  observe::ClusterView view("demo", "gossip");
  const auto at = [](int steps, int ok, int failed) {
    Json document{{"state", "training"}, {"published", steps}, {"loss", 0.5}};
    document["peers"] = Json::array({{{"name", "w2"},
                                      {"attempts_ok", ok},
                                      {"attempts_failed", failed},
                                      {"last_failure", "timed_out"}}});
    return cluster({node("w1", document.dump())});
  };
  view.add(at(100, 10, 1), 1000);
  CHECK(view.status()["pulls"].empty());  // what was before the first look is not recent
  view.add(at(120, 12, 1), 1002);
  Json status = view.status();
  CHECK(status["nodes"][0]["steps_per_s"] == 10);
  CHECK(status["pulls"] == Json::parse(R"([["w1", "w2", 2, 0, 0.0, null]])"));
  view.add(at(120, 12, 2), 1003);
  CHECK(view.status()["pulls"] == Json::parse(R"([["w1", "w2", 0, 1, 0.0, "timed_out"]])"));
  view.add(at(3, 0, 0), 1004);  // started again: no rate across that
  CHECK(!view.status()["nodes"][0].contains("steps_per_s"));
  CHECK(view.history()["nodes"]["w1"]["loss"] == Json::parse("[0.5, 0.5, 0.5, 0.5]"));
  view.add(at(3, 0, 0), 1100);
  CHECK(view.status()["pulls"].empty());
}

TEST_CASE("numbers of the program have curves, in memory that no process can fill") {
  observe::ClusterView view("demo", "gossip");
  view.add(cluster({node("w1", R"({"shown": {"accuracy": 0.5, "loss": null}})")}), 1000);
  CHECK(view.status()["nodes"][0]["shown/accuracy"] == 0.5);
  CHECK(!view.status()["nodes"][0].contains("shown/loss"));
  for (int i = 0; i < 40; ++i) {
    Json others{{"accuracy", 0.75}, {std::string(41, 'x'), 1}};
    others["other " + std::to_string(i)] = i;
    view.add(cluster({node("w1", Json{{"shown", others}}.dump())}), 1001 + i);
  }
  view.add(cluster({node("w1", R"({"shown": "accuracy"})")}), 1041);
  const Json curves = view.history()["nodes"]["w1"];
  CHECK(curves.size() <= 16);
  CHECK(curves["shown/accuracy"][0] == 0.5);
  CHECK(curves["shown/accuracy"][1] == 0.75);
  CHECK(curves["shown/accuracy"].back() == nullptr);
}

TEST_CASE("what processes tell of themselves is an event once, in the order of time") {
  observe::ClusterView view("demo", "gossip");
  const auto with_events = [](const std::string& name, int incarnation, const std::string& events) {
    return node(name, R"({"incarnation": )" + std::to_string(incarnation) + R"(, "events": )" +
                          events + "}");
  };
  const std::string one = R"({"number": 1, "wall": 50, "level": "info", "text": "joined"})";
  const std::string two = R"({"number": 2, "wall": 40, "level": "warn", "text": "lost w3"})";
  const auto w2 =
      with_events("w2", 1, R"([{"number": 9, "wall": 45, "level": "info", "text": "view 2"}, 3])");
  view.add(cluster({with_events("w1", 1, '[' + one + ']'), w2}), 60);
  view.add(cluster({with_events("w1", 1, '[' + one + ',' + two + ']'), w2}), 61);
  view.add(cluster({with_events("w1", 2, '[' + one + ']'), w2}), 62);
  std::string told;
  const Json status = view.status();
  for (const Json& event : status["events"]) {
    told += event["process"].get<std::string>() + ' ' + event["words"].get<std::string>() +
            (event["bad"] == true ? "!; " : "; ");
  }
  CHECK(told == "w2 view 2; w1 joined; w1 lost w3!; w1 joined; w1 was started again; ");
}

TEST_CASE("a document that lies about its types is shown without the values") {
  observe::ClusterView view("demo", "gossip");
  NodeStatus liar = node("w1", R"({"state": {"a": 1}, "clock": "x", "peers": [3, {"name": 4}],
    "collective": 7, "kvstore": [1], "members": {}, "incarnation": -1, "loss": [1, 2]})");
  view.add(cluster({liar}), 1);
  view.add(cluster({liar}), 2);
  CHECK(!view.status()["nodes"][0].contains("clock"));
  CHECK(view.metrics().find("dpwa_up{node=\"w1\"} 1.0") != std::string::npos);
  CHECK(view.process("w1")["loss"] == Json::parse("[1, 2]"));
  CHECK(view.process("w9").is_null());
}

TEST_CASE("curves keep the whole time in bounded memory, at a rate that halves") {
  observe::Curves curves(8);
  for (int i = 0; i < 100; ++i) {
    std::map<std::string, observe::Curves::Values> nodes{{"w1", {{"loss", i}}}};
    if (i >= 50) nodes["w2"] = {{"loss", 2 * i}};
    curves.add(i, nodes);
  }
  const Json all = curves.to_json();
  const Json& time = all["time"];
  CHECK(time.size() < 8);
  CHECK(time.front() == 0);
  CHECK(time.back().get<double>() > 80);
  const Json& early = all["nodes"]["w1"]["loss"];
  const Json& late = all["nodes"]["w2"]["loss"];
  REQUIRE(early.size() == time.size());
  REQUIRE(late.size() == time.size());
  for (std::size_t i = 0; i < time.size(); ++i) {
    CHECK(early[i] == time[i]);
    CHECK(late[i] == (time[i] >= 50 ? Json(2 * time[i].get<double>()) : Json()));
  }
}

}  // namespace dpwa
