#pragma once

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/child_process.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

using nlohmann::json;
using Arguments = std::vector<std::string>;

inline constexpr std::chrono::seconds until_it_trains(60);  // until a program with LibTorch trains

// Of one core: a second compute thread would wait for its turn beside other tests.
inline constexpr const char* one_node =
    "nodes: [{name: w1, port: 24999, cores: [0]}]\nbackend: \"null\"\n";

inline std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

// A cluster of one node without a network, and runs of dpwa-train in it.
struct Trainer {
  TemporaryDirectory dir;
  Trainer() { write_text(dir / "cluster.yaml", one_node); }
  void log_warnings_alone() {
    write_text(dir / "cluster.yaml", std::string(one_node) + "log: {level: warn}\n");
  }

  Arguments command(const std::string& run, const Arguments& more) const {
    Arguments all{DPWA_TRAIN, "--config",  (dir / "cluster.yaml").string(),
                  "--name",   "w1",        "--threads",
                  "1",        "--run-dir", (dir / run).string(),
                  "--data",   "synthetic"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  int train(const std::string& run, const Arguments& more) const {
    return start(command(run, more)).wait().value_or(-1);
  }
  ChildProcess start(const Arguments& words, const char* output = "output") const {
    return start_afresh(words, dir / output);
  }
  std::string output() const { return read_text(dir / "output"); }
  json result(const std::string& run) const {
    return json::parse(read_text(dir / run / "w1.result.json"));
  }
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> losses;
    for (const json& line : lines_of(dir / run / "w1.metrics.jsonl"))
      if (line.contains("loss")) losses.push_back(line.at("loss"));
    return losses;
  }
  bool said(const std::string& text) const { return output().find(text) != std::string::npos; }
};

}  // namespace dpwa::test
