#include "dpwa/node/status_document.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "dpwa/base/gpu_load.h"
#include "dpwa/base/load.h"
#include "dpwa/base/time.h"
#include "dpwa/base/version.h"
#include "dpwa/log/events.h"
#include "dpwa/net/open_connections.h"
#include "dpwa/rules/step_clock.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

std::string_view name_of(wire::NodeState state) {
  switch (state) {
    case wire::NodeState::joining:
      return "joining";
    case wire::NodeState::ready:
      return "training";
    case wire::NodeState::finished:
      return "finished";
  }
  return "unknown";
}

using Json = nlohmann::ordered_json;

// To the microsecond: the digits beyond would double the size of the document.
double rounded(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

Json describe(const StepClock::Times& times) {
  const auto spent = [&times](StepClock::Part part) {
    const Duration time = times.spent[static_cast<std::size_t>(part)];
    return rounded(std::chrono::duration<double>(time).count());
  };
  return {{"count", times.steps},
          {"compute_s", spent(StepClock::Part::compute)},
          {"publish_s", spent(StepClock::Part::publish)},
          {"blend_s", spent(StepClock::Part::blend)},
          {"wait_s", spent(StepClock::Part::wait)}};
}

Json describe(const HostLoad& load) {
  return {{"id", load.id},
          {"processors", load.processors},
          {"busy_s", rounded(load.busy_s)},
          {"idle_s", rounded(load.idle_s)},
          {"disk_wait_s", rounded(load.disk_wait_s)},
          {"stolen_s", rounded(load.stolen_s)},
          {"load", load.load}};
}

Json describe(const GpuLoad& load) {
  Json out{{"name", load.name}};
  if (load.busy) out["busy"] = *load.busy;
  out["memory_used_bytes"] = load.memory_used_bytes;
  out["memory_bytes"] = load.memory_bytes;
  return out;
}

Json describe(const ProcessLoad& load) {
  return {{"cpu_s", rounded(load.cpu_s)},
          {"cpu_wait_s", rounded(load.cpu_wait_s)},
          {"main_cpu_s", rounded(load.main_cpu_s)},
          {"main_cpu_wait_s", rounded(load.main_cpu_wait_s)},
          {"disk_wait_s", rounded(load.disk_wait_s)},
          {"disk_bytes", load.disk_bytes},
          {"threads", load.threads},
          {"resident_bytes", load.resident_bytes},
          {"processors", load.processors},
          {"scheduling_group", load.group}};
}

Json describe(const net::OpenConnection& connection) {
  return {{"own_port", connection.own_port},
          {"host", connection.host},
          {"port", connection.port},
          {"rtt_ms", connection.rtt_ms},
          {"rtt_deviation_ms", connection.rtt_deviation_ms},
          {"segments_sent", connection.segments_sent},
          {"segments_sent_again", connection.segments_sent_again},
          {"bytes_sent", connection.bytes_sent},
          {"bytes_received", connection.bytes_received}};
}

Json all_connections() {
  Json list = Json::array();
  for (const net::OpenConnection& connection : net::open_connections())
    list.push_back(describe(connection));
  return list;
}

Json all_events() {
  Json list = Json::array();
  for (const Event& event : recent_events()) list.push_back(Json::parse(to_json(event)));
  return list;
}

}  // namespace

std::string status_document(const LocalProcess& local, const nlohmann::ordered_json& fields) {
  Json out;
  out["schema"] = 1;
  out["version"] = version();
  out["cluster"] = local.cluster;
  out["node"] = local.name;
  out["incarnation"] = local.incarnation;
  out["state"] = name_of(local.state.load());
  out["wall"] = static_cast<double>(wall_clock_us()) / 1e6;
  const Traffic& traffic = local.traffic;
  out["connections_accepted"] = traffic.connections_accepted.load();
  out["connections_refused"] = traffic.connections_refused.load();
  out["protocol_errors"] = traffic.protocol_errors.load();
  out["security_failures"] = traffic.security_failures.load();
  out["steps"] = describe(local.steps.times());
  for (const auto& [name, value] : local.shown.all()) out["shown"][name] = value;  // NaN: null
  out["host"] = describe(host_load());
  for (const GpuLoad& gpu : own_gpu_watch().loads()) out["host"]["gpus"].push_back(describe(gpu));
  out["process"] = describe(process_load());
  out["connections"] = all_connections();
  out["events"] = all_events();
  out.update(fields);
  for (const auto& [key, json] : local.notes.all()) out[key] = Json::parse(json);
  return out.dump();
}

}  // namespace dpwa
