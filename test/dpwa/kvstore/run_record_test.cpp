#include "dpwa/kvstore/run_record.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace dpwa::kvstore {
namespace {

RunRecord sample() {
  return {7.5,
          {{"--data", "mnist, 60000 samples"}, {"--lr", "0.1"}, {"--schedule", "taper"}},
          {{"fc1.weight", "float32[10,3]", 30}, {"fc1.bias", "float32[10]", 10}}};
}

std::string model_difference(const RunRecord& own, const RunRecord& run) {
  return other_model(own, decode_run(encode(run))).value_or("none");
}

// Too many for their names to have room in the record.
RunRecord large(const std::string& last) {
  RunRecord record;
  for (int i = 0; i < 1000; ++i)
    record.keys.push_back({"layer" + std::to_string(i) + ".weight", "float32[5]", 5});
  record.keys.push_back({last, "float32[5]", 5});
  return record;
}

}  // namespace

TEST_CASE("a record of a run survives its form") {
  const RunRecord record = sample();
  const std::vector<double> values = encode(record);
  REQUIRE(values.size() == run_record_elements);
  const RunOfOthers run = decode_run(values);
  CHECK(run.clock == 7.5);
  CHECK(run.key_count == 2);
  CHECK(run.elements == 40);
  CHECK(run.settings == record.settings);
  REQUIRE(run.keys.size() == 2);
  CHECK(run.keys[1].name == "fc1.bias");
  CHECK(run.keys[1].type == "float32[10]");
  CHECK(model_difference(record, record) == "none");
}

TEST_CASE("another model is named by its first key that differs") {
  RunRecord own = sample();
  own.keys[1].type = "float64[10]";
  CHECK(model_difference(own, sample()) ==
        "another model than the run: key 2 is 'fc1.bias' float64[10], and that of the run "
        "'fc1.bias' float32[10]; 2 keys of 40 elements here, 2 keys of 40 elements in the run");
  own.keys.pop_back();
  CHECK(model_difference(own, sample()) ==
        "another model than the run: it lacks the key 'fc1.bias' of the run; 1 key of 30 elements "
        "here, 2 keys of 40 elements in the run");
  CHECK(model_difference(sample(), own).find("the run has no key 'fc1.bias'; ") !=
        std::string::npos);
}

TEST_CASE("a model with more keys than the record names is compared by its digest") {
  CHECK(model_difference(large("a"), large("a")) == "none");
  CHECK(model_difference(large("a"), large("b")) ==
        "another model than the run: 1001 keys of 5005 elements here, 1001 keys of 5005 elements "
        "in the run");
}

TEST_CASE("settings of the most bytes have room in a record") {
  RunRecord record = sample();
  record.settings = {{"what", std::string(max_run_settings_bytes - 7, 'x')}};
  CHECK(decode_run(encode(record)).settings == record.settings);
}

TEST_CASE("any numbers are decoded as a record and shown as plain text") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double huge = std::numeric_limits<double>::max();
  for (const double value : {nan, -1.0, huge, -huge, 0.5, 281474976710655.0})
    CHECK(other_model(sample(), decode_run(std::vector<double>(run_record_elements, value))));
  CHECK(decode_run(std::vector<double>(3, 1.0)).key_count == 0);
  RunRecord record = sample();
  record.settings = {{"--lr", "a\nb\x1f"}};
  const RunOfOthers run = decode_run(encode(record));
  REQUIRE(run.settings.size() == 1);
  CHECK(run.settings[0].second == "a?b?");
}

}  // namespace dpwa::kvstore
