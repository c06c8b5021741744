#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/log/log.h"
#include "dpwa/node/node.h"

namespace dpwa {
namespace {

struct LogLine {
  LogLevel level;
  std::string text;
};

std::vector<LogLine> lines_of(const ReloadPlan& plan) {
  std::vector<LogLine> lines;
  for (const auto& change : plan.applied)
    lines.push_back({LogLevel::info, "reloaded: " + to_text(change)});
  for (const auto& change : plan.kept)
    lines.push_back({LogLevel::warn, "needs a restart, not taken over: " + to_text(change)});
  if (lines.empty())
    lines.push_back({LogLevel::info, "reloaded: the cluster file has not changed"});
  return lines;
}

// The others as the file was read last; the own entry as this run was begun with it.
std::vector<NodeEntry> in_force(std::vector<NodeEntry> listed, const NodeEntry& own) {
  for (NodeEntry& node : listed) {
    if (node.name == own.name) node = own;
  }
  return listed;
}

}  // namespace

void Gossip::reload(const Config& fresh) {
  Config running = config_;
  running.nodes = in_force(listed_, config_.self_node());
  ReloadPlan plan = plan_reload(running, fresh);
  plan.config.nodes = config_.nodes;
  std::vector<NodeEntry> listed = fresh.nodes;
  const std::vector<LogLine> lines = lines_of(plan);
  NewLog opened = open_log(plan.config);  // its file anew
  if (node_) node_->take_up(plan);
  // Nothing below can fail.
  opened.use();
  listed_ = std::move(listed);
  config_ = std::move(plan.config);
  state_.reload(config_.gossip.pull_probability, config_.gossip.step_budget == Duration::zero(),
                config_.gossip.start_wait);
  for (const LogLine& line : lines) log(line.level, "config", line.text);
  reload_security();
}

void Gossip::reload_security() {
  if (config_.security.mode == "insecure" || config_.security.mode.empty() || !node_) return;
  try {
    if (const auto why = node_->reload_security()) {
      log(LogLevel::error, "config", "the keys stay as they were: " + *why);
    } else {
      log(LogLevel::info, "config", "reloaded: the files of the security section");
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::error, "config", "the keys stay as they were: out of memory");
  }
}

}  // namespace dpwa
