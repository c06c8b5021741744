#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "dpwa/base/median.h"
#include "dpwa/diagnosis/rules.h"

namespace dpwa::diagnosis {
namespace {

constexpr double starved = 0.12;   // share of its own time that a thread was ready, and others ran
constexpr double least_own = 0.3;  // of the time: what nearly always waits is not judged by less
constexpr double much_starved = 0.4;
constexpr double slower = 1.4;      // than the median of the others
constexpr double waits_itself = 1;  // of its own time
constexpr double works = 0.5;       // share of its own time that the main thread computed
constexpr double much_stolen = 0.05;
constexpr double much_disk = 0.08;
constexpr double much_used = 0.4;  // of the processors, by the nodes
constexpr double busy_disk = 1e5;  // bytes a second of a program that works with it
// Share of its own time that a program neither computes nor waits for a processor.
constexpr double stands_still = 0.25;

// Of its own time it neither computed nor waited for a processor.
double blocked_s(const Activity& activity) {
  return activity.own_s - activity.main_cpu_s - activity.main_cpu_wait_s;
}

bool waits_for_disk(const Activity& activity, const HostActivity& host) {
  return activity.own_s > 0 && host.disk_wait_s >= much_disk * host.seconds &&
         activity.disk_bytes >= busy_disk * activity.seconds &&
         blocked_s(activity) >= stands_still * activity.own_s;
}

struct Tenants {
  std::vector<const Activity*> all;
  std::vector<std::string> starving;
  double starving_share = 0;      // mean over those
  double cpu_s = 0;               // of all
  double wanted_s = 0;            // that all would use if none waited for other nodes
  bool waits_for_disk = false;    // one of them
  std::set<unsigned> processors;  // that any of the starving ones may use
};

// Nodes that step together want the processors in bursts.
double wanted_s(const Activity& activity) {
  const double all_s = activity.own_s + activity.wait_s;
  const double works = all_s > 0 ? std::max(0.1, activity.own_s / all_s) : 1;
  return (activity.cpu_s + activity.cpu_wait_s) / works;
}

// Of its own time, so that waits for others hide nothing. A server has no main thread that
// computes.
double wait_share(const Activity& activity) {
  if (activity.seconds <= 0) return 0;
  if (activity.last.is_server) return activity.cpu_wait_s / activity.seconds;
  const double own_s = std::clamp(activity.own_s, least_own * activity.seconds, activity.seconds);
  return std::min(1.0, activity.main_cpu_wait_s / (activity.steps > 0 ? own_s : activity.seconds));
}

std::map<std::string, Tenants> tenants_of(const Interval& interval) {
  std::map<std::string, Tenants> by_host;
  for (const auto& [name, activity] : interval.active) {
    Tenants& tenants = by_host[activity.last.host];
    tenants.all.push_back(&activity);
    tenants.cpu_s += activity.cpu_s;
    tenants.wanted_s += wanted_s(activity);
    const auto host = interval.hosts.find(activity.last.host);
    if (host != interval.hosts.end())
      tenants.waits_for_disk |= waits_for_disk(activity, host->second);
    if (wait_share(activity) < starved) continue;
    tenants.starving.push_back(name);
    tenants.processors.insert(activity.last.processors.begin(), activity.last.processors.end());
    tenants.starving_share += wait_share(activity);
  }
  for (auto& [host, tenants] : by_host) {
    if (!tenants.starving.empty())
      tenants.starving_share /= static_cast<double>(tenants.starving.size());
  }
  return by_host;
}

std::string waited_words(const Tenants& tenants) {
  return "ready to run, but not running, for " + percent(tenants.starving_share) +
         " of its own time; ";
}

// Who shares the processors by groups gains nothing by being nicer than a program of another one.
std::string group_words(const Tenants& tenants) {
  const std::string& group = tenants.all.front()->last.group;
  if (!group.starts_with("/autogroup")) return "";
  return "; this system gives every session the same share (" + group +
         "), whatever the nice values of their programs";
}

constexpr auto look_for_limits =
    "look for a CPU quota of the control group (cpu.max), and for nodes that are pinned to the "
    "same processor (cores)";

// They use all of the processors that they may use, and others of their host are idle.
bool are_pinned(const Tenants& tenants, const HostActivity& host) {
  const auto usable = static_cast<double>(tenants.processors.size());
  double cpu_s = 0;
  for (const Activity* activity : tenants.all) {
    if (std::ranges::includes(tenants.processors, activity->last.processors))
      cpu_s += activity->cpu_s;
  }
  return usable > 0 && usable < host.processors && cpu_s >= much_used * usable * host.seconds &&
         host.idle_s >= much_used * (host.processors - usable) * host.seconds;
}

void judge_starving(const Tenants& tenants, const HostActivity& host, Findings& findings) {
  const double capacity_s = host.processors * host.seconds;
  if (are_pinned(tenants, host)) {
    findings.push_back({Cause::limited_cpu, named(tenants.starving), tenants.starving_share,
                        waited_words(tenants) + "they may use " +
                            std::to_string(tenants.processors.size()) + " of " +
                            std::to_string(host.processors) + " processors",
                        look_for_limits});
    return;
  }
  const double others_s = std::max(0.0, host.busy_s - tenants.cpu_s);
  const bool has_others = others_s >= std::max(0.25 * host.seconds, 0.1 * capacity_s);
  // Not by the waits of many threads for a quota, or for other programs.
  const bool is_crowded = tenants.cpu_s >= much_used * capacity_s &&
                          tenants.wanted_s >= (has_others ? 1.5 : 1.1) * capacity_s;
  const std::string where = named(tenants.starving);
  char numbers[160];
  if (is_crowded) {
    std::snprintf(numbers, sizeof numbers,
                  "%zu processes of the cluster want %.1f of %u processors", tenants.all.size(),
                  tenants.wanted_s / host.seconds, host.processors);
    findings.push_back({Cause::crowded_host, where, tenants.starving_share,
                        waited_words(tenants) + numbers,
                        "run fewer nodes on this host, or fewer threads in each (--threads)"});
  }
  if (has_others) {
    std::snprintf(numbers, sizeof numbers, "other programs use %.1f of %u processors",
                  others_s / host.seconds, host.processors);
    findings.push_back({Cause::other_programs, where, tenants.starving_share,
                        waited_words(tenants) + numbers + group_words(tenants),
                        "look at top on that host; end them, or give the nodes processors of "
                        "their own (cores)"});
  }
  if (is_crowded || has_others) return;
  // The kernel's own threads, which write for the nodes, take their processors.
  if (tenants.waits_for_disk && tenants.starving_share < much_starved) return;
  std::snprintf(numbers, sizeof numbers, "%s of the processors' time was idle",
                percent(capacity_s > 0 ? host.idle_s / capacity_s : 0).c_str());
  findings.push_back({Cause::limited_cpu, where, tenants.starving_share,
                      waited_words(tenants) + numbers, look_for_limits});
}

void judge_stolen(const Tenants& tenants, const HostActivity& host, Findings& findings) {
  const double share = host.stolen_s / (host.processors * host.seconds);
  if (!(share >= much_stolen)) return;
  std::vector<std::string> names;
  for (const Activity* activity : tenants.all) names.push_back(activity->name);
  findings.push_back({Cause::stolen_cpu, named(names), share,
                      "the hypervisor took " + percent(share) + " of its processors' time",
                      "other virtual machines use this hardware: move, or use a machine with "
                      "processors of its own"});
}

// Of a step, without what its main thread waited for a processor. 0: no steps.
double free_step_s(const Activity& activity) {
  if (activity.own_s <= 0) return 0;
  const double starved = std::min(0.9, std::max(0.0, activity.main_cpu_wait_s / activity.own_s));
  return activity.own_step_s * (1 - starved);
}

double cpu_per_step_s(const Activity& activity) {
  return activity.steps > 0 ? activity.main_cpu_s / activity.steps : 0;
}

// Of most others; 0: there are none. What one that starves would take without it is a guess, which
// counts only where all starve.
template <class Measure>
double usual(const Interval& interval, const Activity& but, const Measure& measure) {
  std::vector<double> times, of_starving;
  for (const auto& [name, activity] : interval.active) {
    if (&activity == &but || activity.own_step_s <= 0) continue;
    (wait_share(activity) < starved ? times : of_starving).push_back(measure(activity));
  }
  if (times.empty()) times = of_starving;
  return times.empty() ? 0 : lower_median(times);
}

// What the others wait for waits itself for next to nothing: a program that fills its steps up to a
// length stands still for longer where it has waited less.
bool holds_up_nobody(const Activity& activity) {
  return activity.wait_s >= waits_itself * activity.own_s;
}

// A starved thread has to show it in its processor time as well.
bool is_slow(const Interval& interval, const Activity& activity) {
  const double usual_s = usual(interval, activity, free_step_s);
  const double step_s = free_step_s(activity);
  if (usual_s <= 0 || step_s < slower * usual_s || step_s - usual_s < 1e-4) return false;
  if (holds_up_nobody(activity)) return false;
  return wait_share(activity) < starved ||
         cpu_per_step_s(activity) >= slower * usual(interval, activity, cpu_per_step_s);
}

void judge_pace(const Interval& interval, const Activity& activity, bool is_stolen,
                const HostActivity& host, Findings& findings) {
  if (activity.own_step_s <= 0 || activity.own_s <= 0) return;
  if (waits_for_disk(activity, host)) {
    const double share = blocked_s(activity) / activity.own_s;
    findings.push_back({Cause::disk, activity.name, share,
                        "its program stood still for " + percent(share) +
                            " of its steps, and its host waited for a disk for " +
                            percent(host.disk_wait_s / host.seconds),
                        "look at iostat -x; put data and checkpoints on a faster disk, or write "
                        "fewer checkpoints"});
    return;
  }
  if (is_stolen || !is_slow(interval, activity)) return;
  const double usual_s = usual(interval, activity, free_step_s);
  const double step_s = free_step_s(activity);
  const double share = 1 - usual_s / step_s;
  const double free_s = std::max(activity.main_cpu_s, activity.own_s - activity.main_cpu_wait_s);
  const bool computes = activity.main_cpu_s >= works * free_s;
  const std::string times = "a step takes " + milliseconds(step_s) + " without waits, and " +
                            milliseconds(usual_s) +
                            " at most others; its main thread computed for " +
                            percent(activity.main_cpu_s / free_s) + " of that";
  if (computes) {
    findings.push_back({Cause::slow_cpu, activity.name, share, times,
                        "its processor is slower (look at its clock rate and temperature), or it "
                        "computes more: compare batch size, --threads and the build"});
  } else {
    findings.push_back(
        {Cause::slow_program, activity.name, share, times,
         "its program waits for something outside of dpwa: data, a device, a pause"});
  }
}

}  // namespace

void judge_hosts(const Interval& interval, Findings& findings) {
  for (const auto& [id, tenants] : tenants_of(interval)) {
    const auto found = interval.hosts.find(id);
    if (found == interval.hosts.end() || found->second.processors == 0 ||
        found->second.seconds <= 0)
      continue;
    const HostActivity& host = found->second;
    const std::size_t before = findings.size();
    judge_stolen(tenants, host, findings);
    const bool is_stolen = findings.size() > before;
    if (!tenants.starving.empty()) judge_starving(tenants, host, findings);
    for (const Activity* activity : tenants.all)
      judge_pace(interval, *activity, is_stolen, host, findings);
  }
}

}  // namespace dpwa::diagnosis
