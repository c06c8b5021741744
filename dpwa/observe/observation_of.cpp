#include "dpwa/observe/observation_of.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <sstream>
#include <string>

namespace dpwa::observe {
namespace {

// NaN: none.
double measure_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
}

double number_in(const Json& document, const char* key) {
  const double value = measure_in(document, key);
  return std::isfinite(value) ? value : 0;
}

std::uint16_t port_in(const Json& document, const char* key) {
  return static_cast<std::uint16_t>(count_in(document, key));
}

diagnosis::Connection connection_of(const Json& document) {
  return {port_in(document, "own_port"),
          port_in(document, "port"),
          number_in(document, "rtt_ms"),
          count_in(document, "segments_sent"),
          count_in(document, "segments_sent_again"),
          count_in(document, "bytes_sent"),
          count_in(document, "bytes_received"),
          number_in(document, "rtt_deviation_ms")};
}

diagnosis::Peer peer_of(const Json& document) {
  const std::string failure = raw_text(document, "last_failure");
  const std::uint64_t in_a_row = count_in(document, "failures_in_a_row");
  const bool rests = failure == "-" && in_a_row == 0 && number_in(document, "retry_in_ms") > 0;
  return {count_in(document, "attempts_ok"), count_in(document, "attempts_failed"), in_a_row,
          failure == "timed_out" || failure == "unreachable", rests};
}

// Of a list such as "0-3,8"; none if it is none.
std::set<unsigned> processors_in(const std::string& list) {
  constexpr unsigned most = 1 << 16;
  std::set<unsigned> processors;
  unsigned named = 0;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    unsigned from = 0, to = 0;
    const int found = std::sscanf(part.c_str(), "%u-%u", &from, &to);
    if (found == 1) to = from;
    if (found < 1 || from > to || to > most) return {};
    named += to - from + 1;
    if (named > most) return {};  // repeats itself
    for (unsigned each = from; each <= to; ++each) processors.insert(each);
  }
  return processors;
}

void read_load(const Json& document, diagnosis::Process& process) {
  const Json& steps = object_in(document, "steps");
  process.steps = count_in(steps, "count");
  process.compute_s = number_in(steps, "compute_s");
  process.publish_s = number_in(steps, "publish_s");
  process.blend_s = number_in(steps, "blend_s");
  process.wait_s = number_in(steps, "wait_s");
  const Json& load = object_in(document, "process");
  process.group = field_text(load, "scheduling_group");
  process.processors = processors_in(raw_text(load, "processors"));
  process.cpu_s = number_in(load, "cpu_s");
  process.cpu_wait_s = number_in(load, "cpu_wait_s");
  process.main_cpu_s = number_in(load, "main_cpu_s");
  process.disk_bytes = number_in(load, "disk_bytes");
  process.main_cpu_wait_s = number_in(load, "main_cpu_wait_s");
}

// A member of a group waits while it looks for the late ones, or for a group.
bool waits(const Json& document) {
  const Json& group = object_in(document, "collective");
  return flag_in(group, "waits") || flag_in(group, "seeks") ||
         flag_in(object_in(document, "kvstore"), "finishing") ||
         raw_text(document, "waits_for").size() > 1;
}

diagnosis::Process process_of(const NodeStatus& status) {
  diagnosis::Process process;
  process.answers = absence_of(status).empty();
  process.connects = status.connected;
  process.nobody_listens = status.nobody_listens;
  process.left = status.member == "left";
  process.error = status.error;
  if (!process.answers) return process;
  const Json& document = status.document;
  process.is_server = raw_text(document, "role") == "kvserver";
  const std::string state = raw_text(document, "state");
  process.trains = state == "training";
  process.lost_trainer = state == "stale";
  process.incarnation = count_in(document, "incarnation");
  process.host = raw_text(object_in(document, "host"), "id");
  process.loss = measure_in(document, "loss");
  process.to_mean = measure_in(object_in(document, "to_mean"), "distance");
  process.sketch = status.sketch;
  process.pulls_ok = count_in(document, "pulls_ok");
  process.clipped = count_in(object_in(document, "firewall"), "distance_clipped");
  process.waits = waits(document);
  read_load(document, process);
  for (const Json& peer : list_in(document, "peers")) {
    if (peer.is_object()) process.peers[raw_text(peer, "name")] = peer_of(peer);
  }
  for (const Json& connection : list_in(document, "connections")) {
    if (connection.is_object()) process.connections.push_back(connection_of(connection));
  }
  return process;
}

diagnosis::Host host_of(const Json& document) {
  return {static_cast<unsigned>(count_in(document, "processors")), number_in(document, "busy_s"),
          number_in(document, "idle_s"), number_in(document, "disk_wait_s"),
          number_in(document, "stolen_s")};
}

}  // namespace

diagnosis::Observation observation_of(const ClusterStatus& found, double at_s) {
  diagnosis::Observation observation;
  observation.at_s = at_s;
  for (const auto* processes : {&found.nodes, &found.servers}) {
    for (const NodeStatus& status : *processes) {
      diagnosis::Process process = process_of(status);
      const Json& host = object_in(status.document, "host");
      if (process.answers) observation.hosts[process.host] = host_of(host);
      observation.processes[status.name] = std::move(process);
    }
  }
  return observation;
}

}  // namespace dpwa::observe
