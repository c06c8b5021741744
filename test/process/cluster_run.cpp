#include "test/process/cluster_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "dpwa/config/config.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/status_query.h"
#include "dpwa/security/security.h"

namespace dpwa::test {

std::string server_entries(std::size_t servers) {
  std::string entries;
  for (const std::uint16_t port : net::free_ports(servers)) {
    const std::string name = "s" + std::to_string(std::ranges::count(entries, '{') + 1);
    entries += (entries.empty() ? "" : ", ") + ("{name: " + name) +
               ", host: 127.0.0.1, port: " + std::to_string(port) + "}";
  }
  return "[" + entries + "]";
}

ChildProcess start_server(const std::filesystem::path& file, const std::string& name) {
  return ChildProcess({DPWA_CLI, "kvserver", "--config", file.string(), "--name", name},
                      file.parent_path() / (name + ".log"));
}

bool holds_in_time(const std::function<bool()>& condition) {
  constexpr auto pause = std::chrono::milliseconds(10);
  const auto deadline = std::chrono::steady_clock::now() + run_patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

ClusterRun::ClusterRun(std::size_t nodes, const std::string& settings)
    : ports_(net::free_ports(nodes)) {
  std::ofstream file(directory_ / "cluster.yaml");
  file << "nodes:\n";
  for (std::size_t i = 0; i < nodes; ++i) {
    names_.push_back("w" + std::to_string(i + 1));
    file << "  - {name: " << names_.back() << ", port: " << ports_[i] << "}\n";
  }
  file << settings << "\n";
}

void ClusterRun::start(const std::string& name, const Arguments& more,
                       const Arguments& environment) {
  Arguments command{DPWA_VECTOR_TRAINER,  file(), name, directory_ / (name + ".jsonl"), "--until",
                    directory_ / "finish"};
  command.insert(command.end(), more.begin(), more.end());
  processes_.insert_or_assign(name,
                              ChildProcess(command, directory_ / (name + ".log"), environment));
}

void ClusterRun::start_all(const Arguments& more) {
  for (const std::string& name : names_) start(name, more);
}

void ClusterRun::finish() {
  std::ofstream(directory_ / "finish");
}

std::optional<int> ClusterRun::wait(const std::string& name) {
  return process(name).wait(run_patience);
}

bool ClusterRun::all_finished_well() {
  bool well = true;
  for (const std::string& name : names_) well = wait(name) == 0 && well;
  return well;
}

bool ClusterRun::finishes_well() {
  finish();
  const bool well = all_finished_well();
  if (!well) MESSAGE(logs());
  return well;
}

const ClusterRun::Written& ClusterRun::written_by(const std::string& name) const {
  Written& written = written_[name];
  std::ifstream file(directory_ / (name + ".jsonl"));
  file.seekg(written.bytes);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    written.bytes += static_cast<std::streamoff>(line.size()) + 1;
    written.lines.push_back(nlohmann::json::parse(line));
    if (written.lines.back().contains("step")) written.steps.push_back(written.lines.back());
  }
  return written;
}

const std::vector<nlohmann::json>& ClusterRun::lines(const std::string& name) const {
  return written_by(name).lines;
}

nlohmann::json ClusterRun::last_line(const std::string& name) const {
  const auto& all = lines(name);
  return all.empty() ? nlohmann::json() : all.back();
}

const std::vector<nlohmann::json>& ClusterRun::steps(const std::string& name) const {
  return written_by(name).steps;
}

std::size_t ClusterRun::count(const std::string& name, std::size_t from, const std::string& outcome,
                              const std::string& peer) const {
  const auto& all = steps(name);
  std::size_t count = 0;
  for (std::size_t i = from; i < all.size(); ++i) {
    if (all[i]["outcome"] == outcome && (peer.empty() || all[i]["peer"] == peer)) ++count;
  }
  return count;
}

nlohmann::json ClusterRun::status(const std::string& name) const {
  const auto index = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  const std::vector<PeerAddress> node{{name, {"127.0.0.1"}, ports_.at(index)}};
  const auto security = make_observer_security(load_cluster(file()), name);
  const auto answers = query_status("dpwa", node, std::chrono::seconds(10), security.get());
  return nlohmann::json::parse(answers[0].json, nullptr, /*allow_exceptions=*/false);
}

std::string ClusterRun::log(const std::string& name) const {
  return read_text(directory_ / (name + ".log"));
}

std::string ClusterRun::logs() const {
  std::string all;
  for (const std::string& name : names_) all += name + ":\n" + log(name);
  return all;
}

}  // namespace dpwa::test
