#include "dpwa/attach/protocol.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>

#include "dpwa/base/checksum.h"
#include "dpwa/ipc/unix_socket.h"

namespace dpwa::attach {

using nlohmann::json;

std::string version_problem(const json& message, const std::string& other_end) {
  const int theirs = message.value("version", 1);
  if (theirs == protocol_version) return {};
  return other_end + " speaks version " + std::to_string(theirs) +
         " of the attach protocol, this process version " + std::to_string(protocol_version) +
         "; run the same release of dpwa on both sides";
}

std::string socket_name(const std::string& cluster, const std::string& node, std::uint16_t port) {
  const std::string whole = cluster + '\0' + node;
  char text[64];
  std::snprintf(text, sizeof text, "dpwa-node-%u-%u-%08x", static_cast<unsigned>(::geteuid()),
                unsigned{port}, crc32c(std::as_bytes(std::span(whole))));
  return text;
}

FileDescriptor listen_for_trainers(const std::string& name) {
  try {
    return ipc::listen_at(name);
  } catch (const std::system_error& error) {
    throw std::runtime_error(error.code() == std::errc::address_in_use
                                 ? std::string("a node process of that name runs already")
                                 : error.code().message());
  }
}

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
