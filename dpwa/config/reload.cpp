#include "dpwa/config/reload.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <string_view>

#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;  // key, value

void flatten(const YAML::Node& node, const std::string& key, Values& values) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const auto name = entry.first.as<std::string>();
      flatten(entry.second, key.empty() ? name : key + "." + name, values);
    }
  } else if (node.IsSequence() && key == "nodes") {
    for (const auto& entry : node)
      flatten(entry, key + "[" + entry["name"].as<std::string>() + "]", values);
  } else if (node.IsSequence()) {
    YAML::Emitter out;
    out << YAML::Flow << node;
    values.emplace_back(key, out.c_str());
  } else {
    values.emplace_back(key, node.as<std::string>(""));
  }
}

Values values_of(const Config& config) {
  Values values;
  flatten(YAML::Load(to_yaml(config)), "", values);
  return values;
}

std::string find(const Values& values, const std::string& key) {
  const auto found = std::ranges::find(values, key, &Values::value_type::first);
  return found == values.end() ? std::string() : found->second;
}

constexpr std::array<std::string_view, 8> reloadable_keys{"gossip.pull_probability",
                                                          "gossip.timeout_ms",
                                                          "gossip.step_budget_ms",
                                                          "gossip.start_wait_ms",
                                                          "gossip.finish_wait_ms",
                                                          "gossip.final_average",
                                                          "log.level",
                                                          "log.file"};

bool is_reloadable(const std::string& key, const std::string& self) {
  if (key.starts_with("nodes[")) return !key.starts_with("nodes[" + self + "]");
  return std::ranges::find(reloadable_keys, key) != reloadable_keys.end();
}

bool same_endpoint(const NodeEntry& a, const NodeEntry& b) {
  return a.host == b.host && a.port == b.port && a.addresses == b.addresses;
}

const NodeEntry* find(const std::vector<NodeEntry>& nodes, const std::string& name) {
  const auto found = std::ranges::find(nodes, name, &NodeEntry::name);
  return found == nodes.end() ? nullptr : &*found;
}

void compare_nodes(const Config& running, const Config& fresh, ReloadPlan& plan) {
  for (const NodeEntry& node : fresh.nodes) {
    if (node.name == running.self) continue;
    const NodeEntry* before = find(running.nodes, node.name);
    if (before == nullptr) {
      plan.joined.push_back(node);
    } else if (!same_endpoint(*before, node)) {
      plan.moved.push_back(node);
    }
  }
  for (const NodeEntry& node : running.nodes) {
    if (node.name != running.self && find(fresh.nodes, node.name) == nullptr)
      plan.gone.push_back(node.name);
  }
}

}  // namespace

ReloadPlan plan_reload(const Config& running, const Config& fresh) {
  ReloadPlan plan;
  plan.config = running;
  plan.config.gossip.pull_probability = fresh.gossip.pull_probability;
  plan.config.gossip.timeout = fresh.gossip.timeout;
  plan.config.gossip.step_budget = fresh.gossip.step_budget;
  plan.config.gossip.start_wait = fresh.gossip.start_wait;
  plan.config.gossip.finish_wait = fresh.gossip.finish_wait;
  plan.config.gossip.final_average = fresh.gossip.final_average;
  plan.config.log = fresh.log;
  compare_nodes(running, fresh, plan);

  const Values before = values_of(running);
  const Values after = values_of(fresh);
  const auto note = [&](const std::string& key, const std::string& was, const std::string& is) {
    auto& changes = is_reloadable(key, running.self) ? plan.applied : plan.kept;
    changes.push_back({key, was, is});
  };
  for (const auto& [key, value] : after) {
    const std::string was = find(before, key);
    if (was != value) note(key, was, value);
  }
  for (const auto& [key, value] : before) {
    if (std::ranges::find(after, key, &Values::value_type::first) == after.end())
      note(key, value, "");
  }
  return plan;
}

void reload_or_keep(const std::function<void()>& reload) noexcept {
  try {
    try {
      reload();
    } catch (const std::exception& error) {
      log(LogLevel::error, "config", std::string("not reloaded: ") + error.what());
    }
  } catch (...) {  // no memory for the line either
    log(LogLevel::error, "config", "not reloaded: no memory");
  }
}

std::string to_text(const ReloadPlan::Change& change) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  return change.key + ": " + shown(change.before) + " -> " + shown(change.after);
}

}  // namespace dpwa
