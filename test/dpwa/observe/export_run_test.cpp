#include "dpwa/observe/export_run.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "test/support/temporary_directory.h"

namespace dpwa {

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

}  // namespace

TEST_CASE("an event record has the bytes that TensorBoard's own writer makes") {
  CHECK(hex(observe::event_record(1.5, 300, {{"loss", 0.5F}})) ==
        "1b000000000000001a0d9e1309000000000000f83f10ac022a0d0a0b0a046c6f7373150000003f69f9315b");
}

TEST_CASE("a run becomes one table, and a folder of events for each node") {
  const test::TemporaryDirectory directory;
  const auto run = directory.path();
  std::ofstream(run / "w10.metrics.jsonl")
      << R"({"t": 2, "step": 1, "test_accuracy": 0.5})" << '\n';
  std::ofstream(run / "w2.metrics.jsonl")
      << R"({"t": 0.5, "step": 1, "loss": 2.5, "outcome": "mixed", "peer": "w1", "factor": null, "compute_ms": 1.25})"
      << "\n{\"t\": 1, \"st";
  std::ofstream(run / "w2.metrics.1.jsonl") << R"({"t": 9, "step": 8})" << '\n';  // before it
  std::ostringstream table;
  observe::write_csv(run, table);
  CHECK(table.str() ==
        "node,t,wall,step,loss,lr,clock,outcome,peer,transport,block,factor,staleness,distance,"
        "clipped,refused,waited_ms,step_ms,compute_ms,publish_ms,blend_ms,bytes,sent,pulls_ok,"
        "pulls_failed,test_accuracy,test_loss\n"
        "w2,9,,8,,,,,,,,,,,,,,,,,,,,,,,\n"
        "w2,0.5,,1,2.5,,,\"mixed\",\"w1\",,,,,,,,,,1.25,,,,,,,,\n"
        "w10,2,,1,,,,,,,,,,,,,,,,,,,,,,0.5,\n");
  observe::write_tensorboard(run, run / "events");
  std::ifstream written(run / "events/w2/events.out.tfevents.0.dpwa", std::ios::binary);
  std::ostringstream bytes;
  bytes << written.rdbuf();
  CHECK(bytes.str().ends_with(
      observe::event_record(0.5, 1, {{"loss", 2.5F}, {"compute_ms", 1.25F}})));
  CHECK_THROWS_WITH_AS(observe::write_csv(run / "events", table), doctest::Contains("no metrics"),
                       std::runtime_error);
}

}  // namespace dpwa
