#include "dpwa/config/reload.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/resolve.h"
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

using ByKey = std::unordered_map<std::string_view, std::string_view>;

ByKey by_key(const Values& values) {
  return {values.begin(), values.end()};
}

bool is_reloadable(const std::string& key, const std::string& self) {
  if (key.starts_with("nodes[")) return !key.starts_with("nodes[" + self + "]");
  const config::Key* known = config::find_key(key);
  return known != nullptr && known->reloads;
}

bool same_endpoint(const NodeEntry& a, const NodeEntry& b) {
  return a.host == b.host && a.port == b.port && a.addresses == b.addresses;
}

using ByName = std::unordered_map<std::string_view, const NodeEntry*>;

ByName by_name(const std::vector<NodeEntry>& nodes) {
  ByName found;
  for (const NodeEntry& node : nodes) found.emplace(node.name, &node);
  return found;
}

void compare_nodes(const Config& running, const Config& fresh, ReloadPlan& plan) {
  const ByName known = by_name(running.nodes);
  for (const NodeEntry& node : fresh.nodes) {
    if (node.name == running.self) continue;
    const auto before = known.find(node.name);
    if (before == known.end()) {
      plan.joined.push_back(node);
    } else if (!same_endpoint(*before->second, node)) {
      plan.moved.push_back(node);
    }
  }
  const ByName listed = by_name(fresh.nodes);
  for (const NodeEntry& node : running.nodes) {
    if (node.name != running.self && !listed.contains(node.name)) plan.gone.push_back(node.name);
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
  const ByKey values_before = by_key(before);
  const ByKey values_after = by_key(after);
  const auto note = [&](const std::string& key, std::string_view was, const std::string& is) {
    auto& changes = is_reloadable(key, running.self) ? plan.applied : plan.kept;
    changes.push_back({key, std::string(was), is});
  };
  for (const auto& [key, value] : after) {
    const auto known = values_before.find(key);
    const std::string_view was = known == values_before.end() ? "" : known->second;
    if (was != value) note(key, was, value);
  }
  for (const auto& [key, value] : before) {
    if (!values_after.contains(key)) note(key, value, "");
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

BackgroundReload::~BackgroundReload() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void BackgroundReload::begin() noexcept {
  if (thread_.joinable()) {
    again_ = true;
    return;
  }
  reload_or_keep([this] {
    thread_ = start_background_thread([this] {
      name_thread("dpwa-reload");
      try {
        const config::GivesUp gives_up(stop_.get_token());
        fresh_ = load_();
      } catch (...) {
        failure_ = std::current_exception();
      }
      over_ = true;
    });
  });
}

void BackgroundReload::poll(const std::function<void(Config fresh)>& apply) noexcept {
  if (!over_) return;
  thread_.join();
  over_ = false;
  reload_or_keep([&] {
    if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
    apply(std::exchange(fresh_, Config()));
  });
  if (std::exchange(again_, false)) begin();
}

std::string to_text(const ReloadPlan::Change& change) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  return change.key + ": " + shown(change.before) + " -> " + shown(change.after);
}

}  // namespace dpwa
