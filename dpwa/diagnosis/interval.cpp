#include "dpwa/diagnosis/interval.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace dpwa::diagnosis {
namespace {

double grown(std::uint64_t from, std::uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0;
}

double own_seconds(const Process& process) {
  return process.compute_s + process.publish_s + process.blend_s;
}

// Of the process from `first` on.
Activity activity_of(const std::string& name, const Process& first, const Process& last) {
  Activity activity;
  activity.name = name;
  activity.last = last;
  activity.steps = grown(first.steps, last.steps);
  if (last.steps > 0)
    activity.step_s = (own_seconds(last) + last.wait_s) / static_cast<double>(last.steps);
  activity.publish_s = last.publish_s - first.publish_s;
  activity.blend_s = last.blend_s - first.blend_s;
  activity.wait_s = last.wait_s - first.wait_s;
  activity.own_s = own_seconds(last) - own_seconds(first);
  activity.cpu_s = last.cpu_s - first.cpu_s;
  activity.cpu_wait_s = last.cpu_wait_s - first.cpu_wait_s;
  activity.main_cpu_s = last.main_cpu_s - first.main_cpu_s;
  activity.main_cpu_wait_s = last.main_cpu_wait_s - first.main_cpu_wait_s;
  activity.disk_bytes = last.disk_bytes - first.disk_bytes;
  activity.pulls_ok = grown(first.pulls_ok, last.pulls_ok);
  activity.clipped = grown(first.clipped, last.clipped);
  for (const auto& [peer, now] : last.peers) {
    const auto before = first.peers.find(peer);
    const Peer none;
    const Peer& then = before == first.peers.end() ? none : before->second;
    activity.peers[peer] = {now.ok - std::min(now.ok, then.ok),
                            now.failed - std::min(now.failed, then.failed), now.failures,
                            now.is_unreachable, now.rests};
  }
  return activity;
}

bool is_same(const Process& one, const Process& other) {
  return one.answers && other.answers && one.incarnation == other.incarnation;
}

std::vector<double> mean_sketch(const Observation& observation, std::size_t size) {
  std::vector<double> mean(size);
  double count = 0;
  for (const auto& [name, process] : observation.processes) {
    if (process.sketch.size() != size) continue;
    ++count;
    for (std::size_t k = 0; k < size; ++k) mean[k] += process.sketch[k];
  }
  for (double& sum : mean) sum /= count;
  return mean;
}

// ||mean of v||^2 / mean of ||v||^2 of its ways v from the mean model.
double steadiness_of(std::span<const Observation> observations, const std::string& name,
                     const Process& last) {
  constexpr double least = 3;  // observations
  std::vector<double> sum(last.sketch.size());
  const std::vector<double>* before = nullptr;
  double squares = 0, seen = 0;
  for (const Observation& observation : observations) {
    const auto found = observation.processes.find(name);
    if (found == observation.processes.end() || !is_same(found->second, last)) continue;
    const std::vector<double>& own = found->second.sketch;
    if (own.empty() || own.size() != sum.size()) continue;
    if (before != nullptr && *before == own) continue;  // that of a large model is older
    before = &own;
    const std::vector<double> mean = mean_sketch(observation, own.size());
    for (std::size_t k = 0; k < own.size(); ++k) {
      const double way = own[k] - mean[k];
      sum[k] += way;
      squares += way * way;
    }
    ++seen;
  }
  if (seen < least || !(squares > 0)) return std::numeric_limits<double>::quiet_NaN();
  double of_sum = 0;
  for (const double each : sum) of_sum += each * each;
  return of_sum / (seen * squares);
}

void add_activities(std::span<const Observation> observations, Interval& interval) {
  const Observation& end = observations.back();
  for (const auto& [name, last] : end.processes) {
    if (!last.answers) continue;
    const Observation* first = nullptr;
    const Process* before = nullptr;
    std::vector<double> losses, to_mean;
    std::map<std::string, unsigned> rests;
    double own_step_s = 0;
    for (const Observation& observation : observations) {
      const auto found = observation.processes.find(name);
      const bool answered = found != observation.processes.end() && is_same(found->second, last);
      constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
      losses.push_back(answered ? found->second.loss : unknown);
      to_mean.push_back(answered ? found->second.to_mean : unknown);
      if (!answered) continue;
      const Process& now = found->second;
      if (first == nullptr) first = &observation;
      for (const auto& [peer, each] : now.peers) rests[peer] += each.rests ? 1 : 0;
      if (before != nullptr && now.steps > before->steps) {
        const double each =
            (own_seconds(now) - own_seconds(*before)) / grown(before->steps, now.steps);
        own_step_s = own_step_s == 0 ? each : std::min(own_step_s, each);
      }
      before = &now;
    }
    Activity activity = activity_of(name, first->processes.at(name), last);
    activity.seconds = end.at_s - first->at_s;
    activity.losses = std::move(losses);
    activity.to_mean = std::move(to_mean);
    activity.rests = std::move(rests);
    activity.steadiness = steadiness_of(observations, name, last);
    activity.own_step_s = own_step_s;
    interval.active.emplace(name, std::move(activity));
  }
}

void add_hosts(std::span<const Observation> observations, Interval& interval) {
  const Observation& end = observations.back();
  for (const auto& [id, last] : end.hosts) {
    const auto seen = std::ranges::find_if(
        observations, [&id = id](const Observation& one) { return one.hosts.contains(id); });
    const Host& first = seen->hosts.at(id);
    interval.hosts[id] = {last.processors,
                          end.at_s - seen->at_s,
                          last.busy_s - first.busy_s,
                          last.disk_wait_s - first.disk_wait_s,
                          last.stolen_s - first.stolen_s,
                          last.idle_s - first.idle_s};
  }
}

using Ports = std::pair<std::uint16_t, std::uint16_t>;

// The connections of a process by their ports.
std::map<Ports, const Connection*> by_ports(const Process& process) {
  std::map<Ports, const Connection*> found;
  for (const Connection& connection : process.connections)
    found[{connection.own_port, connection.port}] = &connection;
  return found;
}

// The least round trip of the connection in these observations, and what it sent between them.
Link link_over(std::span<const Observation> observations, const std::string& from,
               const Connection& last) {
  Link link;
  link.rtt_ms = last.rtt_ms;
  const Connection* first = nullptr;
  for (const Observation& observation : observations) {
    const auto process = observation.processes.find(from);
    if (process == observation.processes.end()) continue;
    for (const Connection& each : process->second.connections) {
      if (each.own_port != last.own_port || each.port != last.port) continue;
      if (first == nullptr) first = &each;
      link.rtt_ms = std::min(link.rtt_ms, each.rtt_ms);
      link.steady_ms = std::max(link.steady_ms, each.rtt_ms - each.rtt_deviation_ms);
    }
  }
  link.segments = grown(first->segments, last.segments);
  link.segments_again = grown(first->segments_again, last.segments_again);
  link.bytes = grown(first->bytes_sent, last.bytes_sent);
  link.all_segments = static_cast<double>(last.segments);
  link.all_bytes = static_cast<double>(last.bytes_sent);
  return link;
}

void add_links(std::span<const Observation> observations, Interval& interval) {
  std::map<std::string, std::map<Ports, const Connection*>> all;
  for (const auto& [name, process] : observations.back().processes)
    all.emplace(name, by_ports(process));
  for (const auto& [from, connections] : all) {
    for (const auto& [ports, connection] : connections) {
      for (const auto& [to, others] : all) {
        if (to == from || !others.contains({ports.second, ports.first})) continue;
        Link link = link_over(observations, from, *connection);
        link.from = from;
        link.to = to;
        interval.links.push_back(std::move(link));
      }
    }
  }
}

}  // namespace

Interval interval_of(std::span<const Observation> observations) {
  Interval interval;
  if (observations.size() < 2) return interval;
  interval.seconds = observations.back().at_s - observations.front().at_s;
  add_activities(observations, interval);
  add_hosts(observations, interval);
  add_links(observations, interval);
  return interval;
}

}  // namespace dpwa::diagnosis
