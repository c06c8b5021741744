#include <algorithm>
#include <cstdio>

#include "dpwa/diagnosis/rules.h"

namespace dpwa::diagnosis {
namespace {

// One answer may be lost.
bool is_silent(std::span<const Observation> observations, const std::string& name) {
  return std::ranges::all_of(observations.last(2), [&](const Observation& observation) {
    const auto found = observation.processes.find(name);
    return found != observation.processes.end() && !found->second.answers;
  });
}

Finding absence_of(const std::string& name, const Process& process) {
  if (process.nobody_listens) {
    return {Cause::gone, name, 1, "no process listens at its address",
            "look at the end of its log, and start it again"};
  }
  if (process.connects) {
    return {Cause::frozen, name, 1, "its system takes connections, but the process does not answer",
            "it is stopped (SIGSTOP, a debugger), swapped out or hangs: look at its state with ps, "
            "continue it with kill -CONT, or kill it"};
  }
  return {Cause::cut_off, name, 1,
          process.error.empty() ? "nothing answers at its address, not even its system"
                                : "no answer: " + process.error,
          "look at its address, the keys, its host, its network and the packet filters on the way"};
}

// Neither computes, as in an evaluation, nor waits for others.
bool is_stalled(const Activity& activity) {
  constexpr double usual_steps = 3;
  constexpr double least_s = 1;
  constexpr double idle = 0.2;
  const Process& process = activity.last;
  return process.trains && !process.is_server && !process.waits && process.steps > 0 &&
         activity.steps == 0 &&
         activity.seconds >= std::max(least_s, usual_steps * activity.step_s) &&
         activity.main_cpu_s + activity.main_cpu_wait_s < idle * activity.seconds;
}

}  // namespace

void judge_processes(std::span<const Observation> observations, const Interval& interval,
                     Findings& findings) {
  bool all_answer = true;
  for (const auto& [name, process] : observations.back().processes) {
    all_answer = all_answer && process.answers;
    if (!process.left && is_silent(observations, name))
      findings.push_back(absence_of(name, process));
    if (process.lost_trainer)
      findings.push_back({Cause::gone, name, 1,
                          "its trainer is gone; the node process serves its last snapshot",
                          "look at the end of the trainer's log, and start it again"});
  }
  for (const auto& [name, activity] : interval.active) {
    // Those that step together may wait for one that is absent. Nodes of gossip have peers.
    const bool may_wait = !all_answer && activity.peers.empty();
    if (may_wait || !is_stalled(activity)) continue;
    char evidence[128];
    std::snprintf(evidence, sizeof evidence,
                  "no step in %.1f s, where one takes %s; its main thread computed for %s",
                  activity.seconds, milliseconds(activity.step_s).c_str(),
                  milliseconds(activity.main_cpu_s).c_str());
    findings.push_back({Cause::stalled, name, 1, evidence,
                        "its program waits for something outside of dpwa: data, a disk, a device, "
                        "or a debugger; py-spy dump or gdb -p shows where"});
  }
}

}  // namespace dpwa::diagnosis
