#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/child_process.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

inline constexpr std::chrono::seconds launch_patience(120);

// A cluster file and the folder of a run of dpwa-train that a launcher starts.
class LaunchedRun {
 public:
  using Words = std::vector<std::string>;

  // `settings`: the text of the cluster file.
  explicit LaunchedRun(const std::string& settings);

  // The command line of one process, which trains on synthetic data, 60 steps unless
  // `more` says otherwise.
  Words train(const Words& more) const;
  // Starts a launcher, or one process by itself; its output is added to the log.
  ChildProcess start(const Words& launcher, const Words& more, const Words& environment = {}) const;

  std::string log() const;
  nlohmann::json result(int rank) const;
  std::size_t metrics_lines(int rank) const;
  // Whether ranks 0 to size - 1 have ended with one and the same averaged model.
  bool all_agree(int size) const;
  std::filesystem::path folder() const { return folder_ / "run"; }
  std::filesystem::path file() const { return folder_ / "cluster.yaml"; }

 private:
  TemporaryDirectory folder_;
};

// The path of a program; empty, with a line that ctest takes for a skipped test: not installed.
std::string installed(const std::string& program);

}  // namespace dpwa::test
