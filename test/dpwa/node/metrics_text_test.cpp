#include "dpwa/node/metrics_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dpwa {

namespace {

using Json = nlohmann::ordered_json;

std::string metrics_of(const Json& status, const std::string& name = "w1") {
  const Measured measured{name, status};
  return metrics_text({&measured, 1});
}

bool has_line(const std::string& text, const std::string& line) {
  return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
}

}  // namespace

TEST_CASE("metrics are in base units, counters end in _total, and null gives no sample") {
  const Json status = Json::parse(R"({"state": "training", "clock": 12.5, "loss": null,
    "pulls_ok": 7, "pulls_failed": 2, "bytes_received": 1000,
    "collective": {"waits": true}, "kvstore": {"waited_ms": 1500}})");
  const std::string text = metrics_of(status);
  CHECK(has_line(text, "dpwa_clock{node=\"w1\"} 12.5"));
  CHECK(has_line(text, "dpwa_pulls_total{node=\"w1\",outcome=\"failed\"} 2.0"));
  CHECK(has_line(text, "dpwa_received_bytes_total{node=\"w1\"} 1000.0"));
  CHECK(has_line(text, "dpwa_store_wait_seconds{node=\"w1\"} 1.5"));
  CHECK(has_line(text, "dpwa_group_waits{node=\"w1\"} 1.0"));
  CHECK(has_line(text, "dpwa_state{node=\"w1\",state=\"training\"} 1.0"));
  CHECK(text.find("dpwa_loss") == text.npos);
  CHECK(text.find("_ms") == text.npos);
}

TEST_CASE("each GPU of the host of a node has its samples, where there are any") {
  const Json status = Json::parse(R"({"host": {"gpus": [
    {"name": "A", "busy": 0.5, "memory_used_bytes": 3, "memory_bytes": 4},
    {"name": "B", "memory_used_bytes": 1, "memory_bytes": 4}, "none"]}})");
  const std::string text = metrics_of(status);
  CHECK(has_line(text, "dpwa_gpu_busy_ratio{node=\"w1\",gpu=\"0\"} 0.5"));
  CHECK(has_line(text, "dpwa_gpu_memory_used_bytes{node=\"w1\",gpu=\"1\"} 1.0"));
  CHECK(text.find("dpwa_gpu_busy_ratio{node=\"w1\",gpu=\"1\"}") == text.npos);
  CHECK(metrics_of(Json::object()).find("gpu") == std::string::npos);
}

TEST_CASE("numbers of the program have their name as a label, and not more of them than allowed") {
  Json shown{{"test \"accuracy\"", 0.5}, {"loss", nullptr}, {std::string(41, 'x'), 1}};
  for (int i = 0; i < 20; ++i) shown["more " + std::to_string(i)] = i;
  const std::string text = metrics_of({{"shown", shown}});
  CHECK(has_line(text, R"(dpwa_shown{node="w1",name="test \"accuracy\""} 0.5)"));
  CHECK(has_line(text, R"(dpwa_shown{node="w1",name="more 12"} 12.0)"));
  CHECK(text.find("more 13") == text.npos);
  CHECK(text.find("loss") == text.npos);
  CHECK(text.find("xx") == text.npos);
  CHECK(metrics_of({{"shown", 3}}).find("shown") == std::string::npos);
}

TEST_CASE("the samples of a family stand together, under one head") {
  const Json first = {{"clock", 1}}, second = {{"clock", 2}}, absent;
  const std::vector<Measured> all{{"w1", first}, {"w2", second}, {"w3", absent}};
  const std::string text = metrics_text(all);
  CHECK(text.find("# TYPE dpwa_clock gauge\ndpwa_clock{node=\"w1\"} 1.0\ndpwa_clock{node=\"w2\"} "
                  "2.0\n") != text.npos);
  CHECK(text.find("# TYPE dpwa_clock") == text.rfind("# TYPE dpwa_clock"));
  CHECK(has_line(text, "dpwa_up{node=\"w3\"} 0.0"));
  CHECK(text.find("dpwa_clock{node=\"w3\"}") == text.npos);
}

TEST_CASE("names and states from the network stay within their quotes") {
  const Json status = {{"state", "a\"\n\\b"}, {"clock", "text"}, {"members", 3}, {"kvstore", {1}}};
  const std::string text = metrics_of(status, "w\"1\n");
  CHECK(has_line(text, R"(dpwa_state{node="w\"1\n",state="a\"\n\\b"} 1.0)"));
  CHECK(text.find("dpwa_clock") == text.npos);
}

TEST_CASE("members are counted by state, and no peer is a label") {
  const Json status = Json::parse(R"({"members": [{"name": "w2", "status": "alive"},
    {"name": "w3", "status": "alive"}, {"name": "w4", "status": "dead"}, 7],
    "peers": [{"name": "w2", "score": 1}]})");
  const std::string text = metrics_of(status);
  CHECK(has_line(text, "dpwa_members{node=\"w1\",state=\"alive\"} 2.0"));
  CHECK(has_line(text, "dpwa_members{node=\"w1\",state=\"suspect\"} 0.0"));
  CHECK(text.find("w2") == text.npos);
}

}  // namespace dpwa
