#include "bench/worker/group.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bench/commands.h"
#include "bench/measure/statistics.h"
#include "interpolation/kernels/kernels.h"
#include "interpolation/kernels/variants.h"

namespace dpwa::bench {
namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const kernels::Variant& variant : kernels::supported_variants())
    names.emplace_back(variant.name);
  return names;
}

}  // namespace

std::optional<std::size_t> Topology::partner(std::size_t node) const {
  if (all_pull != 0) return std::nullopt;
  return node % 2 == 0 ? node + 1 : node - 1;
}

void add_topology_options(CLI::App& command, Topology& topology) {
  add_size_option(command, "--bytes", topology.bytes, "Size of the float32 parameters");
  CLI::Option* pairs =
      command.add_option("--pairs", topology.pairs, "Pairs of nodes, one of which pulls")
          ->check(CLI::Range(1, 32))
          ->capture_default_str();
  command.add_option("--all-pull", topology.all_pull, "Nodes that all pull from each other")
      ->check(CLI::Range(2, 64))
      ->excludes(pairs);
  command
      .add_option_function<std::string>(
          "--instruction-set", [](const std::string& name) { kernels::use_instruction_set(name); },
          "Vector instructions of the nodes (default: the best of the processor)")
      ->check(CLI::IsMember(instruction_sets()));
  command.add_option("--seconds", topology.seconds, "How long to measure")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  command.add_flag("--json", topology.json, "Print one JSON document instead of text");
}

Group::Group(const std::filesystem::path& program, const std::vector<NodeJob>& jobs) {
  for (const NodeJob& one : jobs) {
    nodes_.push_back(
        {std::make_unique<Child>(std::vector<std::string>{program.string(), "worker"}), one.pulls});
    Json job = one.job;
    job["instruction_set"] = kernels::instruction_set();
    nodes_.back().process->send(job);
  }
  for (const Node& node : nodes_) node.process->receive();
}

std::vector<Json> Group::ask(const Json& command, bool pullers_only) {
  for (const Node& node : nodes_) {
    if (node.pulls || !pullers_only) node.process->send(command);
  }
  std::vector<Json> answers;
  for (const Node& node : nodes_) {
    if (node.pulls || !pullers_only) answers.push_back(node.process->receive());
  }
  return answers;
}

Group::Marks Group::mark() {
  Marks marks;
  for (const Json& node : ask({{"do", "mark"}}, false)) {
    marks.cpu_s += node.at("cpu_s").get<double>();
    marks.tcp_bytes += node.at("tcp_bytes").get<double>();
  }
  return marks;
}

GroupWindow Group::run(double seconds, bool record) {
  return run({{"do", "pull"}, {"seconds", seconds}, {"record", record}});
}

GroupWindow Group::run_times(std::uint64_t count, bool record) {
  return run({{"do", "pull"}, {"count", count}, {"record", record}});
}

GroupWindow Group::run(const Json& command) {
  GroupWindow window;
  std::vector<double> medians;
  const Marks before = mark();
  for (const Json& node : ask(command, true)) {
    const auto bytes = node.at("bytes").get<std::uint64_t>();
    window.pulls += node.at("pulls").get<std::uint64_t>();
    window.bytes += bytes;
    window.gb_per_s += static_cast<double>(bytes) / 1e9 / node.at("seconds").get<double>();
    medians.push_back(node.at("latency_us"));
    for (const auto& [outcome, count] : node.at("failed").items()) {
      window.failed[outcome] = window.failed.value(outcome, 0) + count.get<int>();
    }
  }
  const Marks after = mark();
  window.cpu_s = after.cpu_s - before.cpu_s;
  window.tcp_bytes = after.tcp_bytes - before.tcp_bytes;
  window.latency_us = quantile(medians, 0.5);
  return window;
}

std::vector<Json> Group::reports() {
  return ask({{"do", "report"}}, false);
}

}  // namespace dpwa::bench
