#include "dpwa/attach/protocol.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/snapshot/type_names.h"

namespace dpwa::attach {

using nlohmann::json;

std::string version_problem(const json& message, const std::string& other_end) {
  const bool is_plain = message.contains("tensors");
  const int ours = is_plain ? plain_version : protocol_version;
  const int theirs = message.value(is_plain ? "protocol" : "version", 1);
  if (theirs == ours) return {};
  return other_end + " speaks version " + std::to_string(theirs) +
         " of the attach protocol, this process version " + std::to_string(ours) +
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

json to_json(const FinishReport& report) {
  return {{"averaged", report.averaged},
          {"participants", report.participants},
          {"distance", number(report.distance_to_average)},
          {"enough", report.enough}};
}

json to_json(const StepReport& report) {
  return {{"outcome", to_string(report.outcome)},
          {"peer", report.peer},
          {"factor", report.factor},
          {"staleness", report.staleness},
          {"distance", number(report.distance)},
          {"clipped", report.clipped},
          {"refused", report.refused},
          {"bytes", report.bytes},
          {"waited", std::chrono::duration<double>(report.waited).count()},
          {"clock", report.clock},
          {"pulls_ok", report.pulls_ok},
          {"pulls_failed", report.pulls_failed}};
}

Manifest manifest_in(const json& tensors) {
  std::vector<TensorSpec> specs;
  for (const json& tensor : tensors)
    specs.push_back({tensor.at("name").get<std::string>(),
                     dtype_named(tensor.at("dtype").get<std::string>()),
                     rule_named(tensor.value("rule", "interpolate")),
                     tensor.at("shape").get<std::vector<std::uint64_t>>()});
  return Manifest(std::move(specs));
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

namespace {

// The two messages of a step as they lie in memory: both ends are of the same release, on one host.

struct PackedRequest {
  StepRequest::Half half;
  bool has_loss;
  double loss;
};

constexpr char answer_mark = 'a';

// The name of the peer follows.
struct PackedAnswer {
  char mark = answer_mark;
  bool has_report = false;
  GossipState state;
  StepNumbers report;
};

constexpr char pass_mark = 'p';
constexpr char pass_answer_mark = 'q';

struct PackedPass {
  char mark = pass_mark;
  PassRequest request;
};

// The error follows.
struct PackedPassAnswer {
  char mark = pass_answer_mark;
  double value = 0;
};

template <typename Packed>
std::string bytes_of(const Packed& packed) {
  static_assert(std::is_trivially_copyable_v<Packed>);
  return {reinterpret_cast<const char*>(&packed), sizeof packed};
}

template <typename Packed>
Packed packed_in(std::string_view message) {
  Packed packed;
  std::memcpy(&packed, message.data(), sizeof packed);
  return packed;
}

}  // namespace

std::string encode(const PassRequest& request) {
  return bytes_of(PackedPass{pass_mark, request});
}

std::string encode(const PassAnswer& answer) {
  return bytes_of(PackedPassAnswer{pass_answer_mark, answer.value}) + answer.error;
}

std::optional<PassRequest> pass_request_in(std::string_view message) {
  if (message.size() != sizeof(PackedPass) || message.front() != pass_mark) return std::nullopt;
  return packed_in<PackedPass>(message).request;
}

std::optional<PassAnswer> pass_answer_in(std::string_view message) {
  if (message.size() < sizeof(PackedPassAnswer) || message.front() != pass_answer_mark)
    return std::nullopt;
  const auto packed = packed_in<PackedPassAnswer>(message);
  return PassAnswer{packed.value, std::string(message.substr(sizeof packed))};
}

std::string encode(const StepRequest& request) {
  return bytes_of(PackedRequest{request.half, request.loss.has_value(), request.loss.value_or(0)});
}

std::string encode(const StepAnswer& answer) {
  PackedAnswer packed;
  packed.has_report = answer.report.has_value();
  packed.state = answer.state;
  if (!answer.report) return bytes_of(packed);
  packed.report = *answer.report;
  return bytes_of(packed) + answer.report->peer;
}

std::optional<StepRequest> step_request_in(std::string_view message) {
  using Half = StepRequest::Half;
  if (message.size() != sizeof(PackedRequest)) return std::nullopt;
  const char half = message.front();
  if (half != static_cast<char>(Half::send) && half != static_cast<char>(Half::wait))
    return std::nullopt;
  const auto packed = packed_in<PackedRequest>(message);
  StepRequest request{packed.half, std::nullopt};
  if (packed.has_loss) request.loss = packed.loss;
  return request;
}

std::optional<StepAnswer> step_answer_in(std::string_view message) {
  if (message.size() < sizeof(PackedAnswer) || message.front() != answer_mark) return std::nullopt;
  const auto packed = packed_in<PackedAnswer>(message);
  StepAnswer answer{packed.state, std::nullopt};
  if (packed.has_report)
    answer.report = {packed.report, std::string(message.substr(sizeof packed))};
  return answer;
}

}  // namespace dpwa::attach
