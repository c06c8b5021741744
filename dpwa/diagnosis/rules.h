#pragma once

#include <span>
#include <string>
#include <vector>

#include "dpwa/diagnosis/diagnose.h"
#include "dpwa/diagnosis/interval.h"

namespace dpwa::diagnosis {

// Each adds its findings. Pure.
using Findings = std::vector<Finding>;
// Processes that do not answer, or make no steps.
void judge_processes(std::span<const Observation> observations, const Interval& interval,
                     Findings& findings);
// Processors, disks, and programs that are slower than those of the others.
void judge_hosts(const Interval& interval, Findings& findings);
void judge_links(const Interval& interval, Findings& findings);
// What the models are made of.
void judge_learning(const Interval& interval, Findings& findings);

// "12 %", "3.5 ms", "w1, w2".
std::string percent(double share);
std::string milliseconds(double seconds);
std::string named(const std::vector<std::string>& names);

}  // namespace dpwa::diagnosis
