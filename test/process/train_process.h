#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/process/cluster_run.h"

// dpwa-train as a node of a cluster.
namespace dpwa::test {

// On synthetic data, with one thread. What it prints is added to NAME.log.
inline ChildProcess start_training(const ClusterRun& run, const std::string& name,
                                   const ClusterRun::Arguments& options) {
  ClusterRun::Arguments command{DPWA_TRAIN, "--config",  run.file(),     "--name",
                                name,       "--data",    "synthetic",    "--threads",
                                "1",        "--run-dir", run.directory()};
  command.insert(command.end(), options.begin(), options.end());
  return ChildProcess(command, run.directory() / (name + ".log"));
}

// Discarded while there is none.
inline nlohmann::json training_result(const ClusterRun& run, const std::string& name) {
  return nlohmann::json::parse(std::ifstream(run.directory() / (name + ".result.json")), nullptr,
                               /*allow_exceptions=*/false);
}

// Lines of its metrics so far.
inline std::size_t training_lines(const ClusterRun& run, const std::string& name) {
  const std::string lines = read_text(run.directory() / (name + ".metrics.jsonl"));
  return static_cast<std::size_t>(std::ranges::count(lines, '\n'));
}

}  // namespace dpwa::test
