#include "dpwa/attach/report_text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace dpwa::attach {

using nlohmann::json;

json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

double number_in(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

json to_json(const StepReport& report) {
  return {{"outcome", static_cast<int>(report.outcome)},
          {"peer", report.peer},
          {"factor", number(report.factor)},
          {"staleness", number(report.staleness)},
          {"bytes", report.bytes},
          {"waited_ns", report.waited.count()},
          {"clock", number(report.clock)},
          {"distance", number(report.distance)},
          {"clipped", report.clipped},
          {"refused", report.refused},
          {"block", report.block},
          {"blocks", report.blocks},
          {"same_host", report.same_host},
          {"pulls_ok", report.pulls_ok},
          {"pulls_failed", report.pulls_failed}};
}

StepReport step_report_in(const json& text) {
  StepReport report;
  report.outcome = static_cast<Outcome>(text.at("outcome").get<int>());
  report.peer = text.at("peer").get<std::string>();
  report.factor = number_in(text.at("factor"));
  report.staleness = number_in(text.at("staleness"));
  report.bytes = text.at("bytes").get<std::uint64_t>();
  report.waited = std::chrono::nanoseconds(text.at("waited_ns").get<std::int64_t>());
  report.clock = number_in(text.at("clock"));
  report.distance = number_in(text.at("distance"));
  report.clipped = text.at("clipped").get<bool>();
  report.refused = text.at("refused").get<unsigned>();
  report.block = text.at("block").get<unsigned>();
  report.blocks = text.at("blocks").get<unsigned>();
  report.same_host = text.at("same_host").get<bool>();
  report.pulls_ok = text.at("pulls_ok").get<std::uint64_t>();
  report.pulls_failed = text.at("pulls_failed").get<std::uint64_t>();
  return report;
}

json to_json(const FinishReport& report) {
  return {{"averaged", report.averaged},
          {"participants", report.participants},
          {"distance", number(report.distance_to_average)},
          {"enough", report.enough}};
}

FinishReport finish_report_in(const json& text) {
  FinishReport report;
  report.averaged = text.at("averaged").get<bool>();
  report.participants = text.at("participants").get<std::size_t>();
  report.distance_to_average = number_in(text.at("distance"));
  report.enough = text.at("enough").get<bool>();
  return report;
}

json to_json(const GossipState& state) {
  return {{"clock", number(state.clock)},
          {"lineage", state.lineage},
          {"incarnation", state.incarnation}};
}

GossipState resume_state_in(const json& text) {
  GossipState state;
  state.clock = number_in(text.at("clock"));
  state.lineage = text.at("lineage").get<std::uint64_t>();
  state.incarnation = text.at("incarnation").get<std::uint64_t>();
  return state;
}

}  // namespace dpwa::attach
