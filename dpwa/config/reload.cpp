#include "dpwa/config/reload.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>

#include "dpwa/base/plain_text.h"
#include "dpwa/config/keys.h"
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

bool is_reloadable(const std::string& key, const std::string& self) {
  if (key.starts_with("nodes[")) return !key.starts_with("nodes[" + self + "]");
  const config::Key* known = config::find_key(key);
  return known != nullptr && known->reloads;
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
  for (const config::KeySection& section : config::key_table()) {
    for (const config::Key& key : section.keys) {
      if (key.reloads) key.copy(fresh, plan.config);
    }
  }
  plan.config.lines = fresh.lines;
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
      log(LogLevel::error, "config", "not reloaded: " + one_line(error));
    }
  } catch (...) {  // no memory for the line either
    log(LogLevel::error, "config", "not reloaded: out of memory");
  }
}

std::string to_text(const ReloadPlan::Change& change) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  return change.key + ": " + shown(change.before) + " -> " + shown(change.after);
}

}  // namespace dpwa
