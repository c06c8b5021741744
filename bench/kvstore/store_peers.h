#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/worker/child.h"

namespace dpwa::bench {

// The processes of another program that does the same work, told how often. They speak JsonLines:
//   -> a job                            <- {"ready": true, "name"}
//   -> {"do": "steps", "count"}         <- {"times_us": [...], "cpu_s"}, so far and of the process
// One step more than asked for comes first, untimed: it brings the processes together.
class StepPeers {
 public:
  // One process for each job. Throws std::runtime_error.
  StepPeers(const std::vector<std::string>& command, const std::vector<Json>& jobs);

  std::vector<double> steps(std::uint64_t count);  // of all processes
  double cpu_s() const;                            // of all, so far
  const std::string& name() const { return name_; }

 private:
  std::vector<std::unique_ptr<Child>> processes_;
  std::vector<double> cpu_s_;
  std::string name_;
};

// Steps of c10d's Gloo all-reduce and an optimizer on each rank (bench/peers/c10d_step.py).
// `folder`: where the ranks meet.
std::unique_ptr<StepPeers> start_gloo(const std::string& python, const std::string& script,
                                      std::size_t ranks, std::uint64_t bytes,
                                      const std::string& folder);
// Pushes and pulls of ps-lite, by the built bench/peers/ps_lite_push_pull.cpp.
std::unique_ptr<StepPeers> start_ps_lite(const std::string& program, std::size_t workers,
                                         std::size_t servers, std::uint64_t bytes);

}  // namespace dpwa::bench
