#include "bench/kvstore/store_group.h"

#include <fstream>

#include "dpwa/net/free_ports.h"

namespace dpwa::bench {
namespace {

std::string node_entry(const std::string& name, std::uint16_t port) {
  return "{name: " + name + ", host: 127.0.0.1, port: " + std::to_string(port) + "}";
}

std::string worker_name(std::size_t index) {
  return "w" + std::to_string(index + 1);
}

std::string server_name(std::size_t index) {
  return "s" + std::to_string(index + 1);
}

}  // namespace

std::string problem_of(const StoreSettings& settings) {
  if (settings.type == "dist_async" && settings.optimizer == "none")
    return "dist_async needs --optimizer: an update at each push is made by one";
  if (settings.replicas > 0 && settings.servers < 2)
    return "--replicas needs two servers: the other holder of a value is another server";
  if (settings.keys * sizeof(float) > settings.bytes)
    return "--keys is above the number of elements in --bytes";
  return {};
}

std::vector<std::size_t> elements_of_keys(const StoreSettings& settings) {
  const std::size_t keys = settings.keys;
  // One element each, and what is left in parts of 1, 3, 5 and so on.
  const double left = static_cast<double>(settings.bytes / sizeof(float) - keys);
  std::vector<std::size_t> elements;
  std::size_t before = 0;
  for (std::size_t i = 1; i <= keys; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(keys);
    const auto up_to = static_cast<std::size_t>(left * part * part);
    elements.push_back(1 + up_to - before);
    before = up_to;
  }
  return elements;
}

std::string store_file_text(const StoreSettings& settings,
                            const std::vector<std::uint16_t>& ports) {
  std::string text = "cluster: bench\nbackend: kvstore\nnodes:\n";
  for (std::size_t i = 0; i < settings.workers; ++i)
    text += "  - " + node_entry(worker_name(i), ports.at(i)) + "\n";
  text += "kvstore:\n  type: " + settings.type + "\n";
  text += "  replicas: " + std::to_string(settings.replicas) + "\n";
  // A machine that is busy with other things is no reason to leave a process out.
  text += "  lost_after_ms: 30s\n";
  if (settings.compression != "none")
    text += "  compression: {type: " + settings.compression + "}\n";
  text += "  servers:\n";
  for (std::size_t i = 0; i < settings.servers; ++i)
    text += "    - " + node_entry(server_name(i), ports.at(settings.workers + i)) + "\n";
  text += std::string("transport: {same_host: ") +
          (settings.transport == "same_host" ? "auto" : "off") + "}\n";
  text += "security: {mode: insecure}\nlog: {level: warn}\n";
  return text;
}

StoreGroup::StoreGroup(const StoreSettings& settings) {
  const std::string file = folder_.path() + "/cluster.yaml";
  std::ofstream(file) << store_file_text(settings, net::free_ports(settings.processes()));
  std::vector<NodeJob> jobs;
  const auto add = [&](const char* kind, const std::string& name, std::size_t core) {
    Json job = {{"kind", kind},
                {"config", file},
                {"name", name},
                {"elements", elements_of_keys(settings)},
                {"optimizer", settings.optimizer}};
    if (settings.ping_pong) job["core"] = core;
    jobs.push_back({std::move(job), kind == std::string("store_worker")});
  };
  // Servers last: as children of this process they end last, so workers end in order.
  for (std::size_t i = 0; i < settings.workers; ++i) add("store_worker", worker_name(i), i);
  for (std::size_t i = 0; i < settings.servers; ++i)
    add("store_server", server_name(i), settings.workers + i);
  group_ = std::make_unique<Group>("/proc/self/exe", jobs);
}

std::uint64_t store_group_memory(const StoreSettings& settings) {
  // A worker has parameters, a gradient and a value that arrives; the servers together have values,
  // sums, the state of the optimizer and what is being received and sent, and replicas of it.
  return (3 * settings.workers + 5 * (1 + settings.replicas)) * settings.bytes;
}

}  // namespace dpwa::bench
