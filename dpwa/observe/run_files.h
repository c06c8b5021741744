#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/observe/curves.h"
#include "dpwa/observe/node_status.h"

namespace dpwa::observe {

// What the metrics of one node say: NODE.metrics.jsonl, docs/TRAINING.md. One thread.
class NodeRun {
 public:
  // `begun`: the wall clock at the start of the run; 0: times count from the start of each process.
  explicit NodeRun(double begun = 0);

  // One line of the file. What is no JSON object is left out, such as the half line of a process
  // that was killed.
  void add(const std::string& line);

  // {"made": steps, "steps": {"time": [...], "loss": [...], ...}, "evaluations": {"time": [...],
  // "accuracy":
  // [...], ...}, "peers": {"w2": [ok, failed]}}, each curve thinned to a few hundred points.
  Json to_json() const;

 private:
  const double begun_;
  std::uint64_t made_ = 0;
  Curves steps_;
  Curves evaluations_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> peers_;
};

// The nodes with metrics in the folder of a run, w2 before w10. Throws std::runtime_error with one
// line when there are none.
std::vector<std::string> nodes_of_run(const std::filesystem::path& folder);
// The metrics of all processes that it has been, the first one first: NODE.metrics.1.jsonl, …
std::vector<std::filesystem::path> metrics_files(const std::filesystem::path& folder,
                                                 const std::string& node);

// The files of a run in one folder: {"name", "settings", "summary", "nodes"}. `settings`: of its
// cluster.yaml, by key, and of its trainer; none where a file cannot be read. Throws as
// nodes_of_run().
Json read_run(const std::filesystem::path& folder);

// Several runs side by side: {"mode": "runs", "runs": [...], "differing": ["gossip.blocks", ...]},
// with the keys whose values are not the same in all of them.
Json read_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace dpwa::observe
