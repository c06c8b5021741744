#include "test/process/server_processes.h"

#include <signal.h>

#include <algorithm>
#include <fstream>

#include "dpwa/net/status_query.h"
#include "test/process/cluster_run.h"

namespace dpwa::test {

ServerProcesses::ServerProcesses(Config config) : config_(std::move(config)) {
  // The nodes of these tests do not listen, but a file has a port for each.
  std::uint16_t port = 1;
  for (NodeEntry& node : config_.nodes) node.port = port++;
  if (!config_.kvstore.snapshots.folder.empty()) {
    config_.kvstore.snapshots.folder = snapshots().string();
  }
  write_file();
  for (const NodeEntry& server : config_.kvstore.servers) start(server.name);
}

void ServerProcesses::write_file() const {
  std::ofstream(file()) << to_yaml(config_);
}

void ServerProcesses::set_cluster(const std::string& name) {
  config_.cluster = name;
  write_file();
}

void ServerProcesses::start(const std::string& name) {
  processes_.erase(name);
  processes_.emplace(name, start_server(file(), name));
}

void ServerProcesses::kill_all() {
  for (auto& [name, process] : processes_) process.signal(SIGKILL);
  for (auto& [name, process] : processes_) process.wait(run_patience);
}

std::vector<std::filesystem::path> ServerProcesses::snapshots(const std::string& server,
                                                              const std::string& ending) const {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(snapshots())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(server + ".") && name.ends_with(ending)) found.push_back(entry.path());
  }
  std::ranges::sort(found, {}, [](const auto& path) {
    return std::pair(path.string().size(), path.string());  // the numbers in them, by value
  });
  return found;
}

nlohmann::json ServerProcesses::status(const std::string& name) const {
  const auto& servers = config_.kvstore.servers;
  const auto entry = std::ranges::find(servers, name, &NodeEntry::name);
  const auto answers = query_status(config_.cluster, {{name, {entry->host}, entry->port}},
                                    std::chrono::seconds(2), nullptr);
  return nlohmann::json::parse(answers.front().json, nullptr, false);
}

unsigned ServerProcesses::snapshot(const std::string& name) const {
  const auto found = status(name);
  if (!found.is_object() || !found.contains("snapshot")) return 0;
  return found["snapshot"]["number"].get<unsigned>();
}

bool ServerProcesses::whole() const {
  return std::ranges::all_of(config_.kvstore.servers, [&](const NodeEntry& server) {
    const auto found = status(server.name);
    return found.is_object() && found["state"] == "up" && found["without_replica"] == 0;
  });
}

std::string ServerProcesses::log(const std::string& name) const {
  return read_text(folder_ / (name + ".log"));
}

std::size_t ServerProcesses::count(const std::string& name, const std::string& text) const {
  return count_of(log(name), text);
}

}  // namespace dpwa::test
