#include "dpwa/node/metrics_text.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/base/version.h"
#include "dpwa/net/shown_numbers.h"

namespace dpwa {
namespace {

using Json = nlohmann::ordered_json;

// A value of a status document as a sample. `label`: a further one, such as `outcome="ok"`.
struct Source {
  const char* path;  // a JSON pointer
  const char* label = "";
  double scale = 1;  // to the base unit
};

struct Family {
  const char* name;
  const char* type;
  const char* help;
  std::vector<Source> sources;
};

const char* const gauge = "gauge";
const char* const counter = "counter";

const std::vector<Family>& families() {
  static const auto& table = *new std::vector<Family>{
      {"dpwa_clock", gauge, "Training progress, in steps.", {{"/clock"}}},
      {"dpwa_loss", gauge, "Loss of the latest batch.", {{"/loss"}}},
      {"dpwa_distance_to_mean",
       gauge,
       "Distance of a model to the mean of the models of all nodes.",
       {{"/to_mean/distance"}}},
      {"dpwa_relative_distance_to_mean",
       gauge,
       "The same as a part of the norm of the mean.",
       {{"/to_mean/relative"}}},
      {"dpwa_steps_total", counter, "Steps of the process.", {{"/steps/count"}}},
      {"dpwa_step_seconds_total",
       counter,
       "Time of the steps by what it went to.",
       {{"/steps/compute_s", "part=\"compute\""},
        {"/steps/publish_s", "part=\"publish\""},
        {"/steps/blend_s", "part=\"blend\""},
        {"/steps/wait_s", "part=\"wait\""}}},
      {"dpwa_process_cpu_seconds_total",
       counter,
       "Processor time of the process.",
       {{"/process/cpu_s"}}},
      {"dpwa_process_cpu_wait_seconds_total",
       counter,
       "Time that its threads waited for a processor.",
       {{"/process/cpu_wait_s"}}},
      {"dpwa_process_resident_bytes",
       gauge,
       "Memory of the process.",
       {{"/process/resident_bytes"}}},
      {"dpwa_host_stolen_seconds_total",
       counter,
       "Processor time that the host did not get.",
       {{"/host/stolen_s"}}},
      {"dpwa_model_bytes", gauge, "Size of a snapshot of the model.", {{"/model_bytes"}}},
      {"dpwa_snapshots_published_total",
       counter,
       "Snapshots of the model published.",
       {{"/published"}}},
      {"dpwa_publishes_skipped_total",
       counter,
       "Snapshots skipped, as readers held all buffers.",
       {{"/publishes_skipped"}}},
      {"dpwa_pulls_total",
       counter,
       "Pulls of a peer's model by outcome.",
       {{"/pulls_ok", "outcome=\"ok\""}, {"/pulls_failed", "outcome=\"failed\""}}},
      {"dpwa_pull_attempts_total",
       counter,
       "Requests to peers, at each one asked, by outcome.",
       {{"/attempts_ok", "outcome=\"ok\""}, {"/attempts_failed", "outcome=\"failed\""}}},
      {"dpwa_received_bytes_total",
       counter,
       "Parameters received from peers or servers.",
       {{"/bytes_received"}, {"/kvstore/bytes_received"}}},
      {"dpwa_sent_bytes_total",
       counter,
       "Parameters or gradients sent to peers or servers.",
       {{"/bytes_served"}, {"/kvstore/bytes_sent"}}},
      {"dpwa_averaged_gradient_bytes_total",
       counter,
       "Gradients averaged by all-reduce.",
       {{"/gradient_bytes"}}},
      {"dpwa_same_host_pulls_total",
       counter,
       "Pulls through the memory of the host.",
       {{"/same_host_pulls"}}},
      {"dpwa_firewall_total",
       counter,
       "Parameters that the firewall judged, by verdict.",
       {{"/firewall/distance_warned", "verdict=\"warned\""},
        {"/firewall/distance_clipped", "verdict=\"clipped\""},
        {"/firewall/distance_refused", "verdict=\"refused\""},
        {"/firewall/not_finite", "verdict=\"not_finite\""}}},
      {"dpwa_group_size",
       gauge,
       "Nodes in the group that steps together.",
       {{"/collective/size"}, {"/kvstore/size"}}},
      {"dpwa_group_view", gauge, "Number of the view of the group.", {{"/collective/epoch"}}},
      {"dpwa_group_waits",
       gauge,
       "1 while the node waits in an exchange of its group.",
       {{"/collective/waits"}}},
      {"dpwa_store_wait_seconds",
       gauge,
       "Wait of the last step for servers and other workers.",
       {{"/kvstore/waited_ms", "", 1e-3}}},
      {"dpwa_store_dropped_steps_total",
       counter,
       "Steps of a worker that did not count.",
       {{"/kvstore/dropped"}}},
      {"dpwa_server_epoch", gauge, "Number of the epoch of the servers.", {{"/epoch"}}},
      {"dpwa_server_slices", gauge, "Slices of the model on a server.", {{"/slices"}}},
      {"dpwa_server_held_bytes", gauge, "Values that a server holds.", {{"/bytes"}}},
      {"dpwa_server_updates_total", counter, "Updates of slices by a server.", {{"/updates"}}},
      {"dpwa_server_pushes_total",
       counter,
       "Pushes that a server did not take, by reason.",
       {{"/dropped", "reason=\"dropped\""},
        {"/duplicates", "reason=\"duplicate\""},
        {"/not_finite", "reason=\"not_finite\""}}},
      {"dpwa_server_without_replica",
       gauge,
       "Slices of a server that no other one has.",
       {{"/without_replica"}}},
      {"dpwa_server_snapshot_age_seconds",
       gauge,
       "Age of the last snapshot of all servers.",
       {{"/snapshot/age_s"}}},
      {"dpwa_server_snapshot_failures_total",
       counter,
       "Parts of snapshots not written.",
       {{"/snapshot/failures"}}},
      {"dpwa_connections_total",
       counter,
       "Inbound connections by verdict.",
       {{"/connections_accepted", "verdict=\"accepted\""},
        {"/connections_refused", "verdict=\"refused\""}}},
      {"dpwa_protocol_errors_total",
       counter,
       "Broken frames in either direction.",
       {{"/protocol_errors"}}},
      {"dpwa_security_failures_total",
       counter,
       "Keys or certificates not accepted.",
       {{"/security_failures"}}},
  };
  return table;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result;
}

// A number, or a boolean as 1 or 0. JSON has no number that is not finite.
std::optional<double> number_at(const Json& status, const char* path) {
  const Json::json_pointer pointer(path);
  if (!status.is_object() || !status.contains(pointer)) return std::nullopt;
  const Json& value = status.at(pointer);
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::string text_of(const Json& status, const char* key) {
  const bool has_text = status.is_object() && status.contains(key) && status.at(key).is_string();
  return has_text ? status.at(key).get<std::string>() : "";
}

class Text {
 public:
  void begin(const char* name, const char* type, const char* help) {
    name_ = name;
    head_ = "# HELP " + name_ + ' ' + help + "\n# TYPE " + name_ + ' ' + type + '\n';
  }
  void add(const std::string& labels, double value) {
    text_ += std::exchange(head_, {});  // a family without a sample is left out
    text_ += name_ + '{' + labels + "} " + Json(value).dump() + '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string name_;
  std::string head_;
};

std::string node_label(const Measured& process) {
  return "node=\"" + escaped(process.name) + '"';
}

void add_members(Text& text, std::span<const Measured> processes) {
  text.begin("dpwa_members", gauge, "Members that a node knows, by their state.");
  for (const Measured& process : processes) {
    if (!process.status.is_object() || !process.status.contains("members")) continue;
    std::map<std::string, int> counts{{"alive", 0}, {"suspect", 0}, {"dead", 0}, {"left", 0}};
    for (const Json& member : process.status.at("members")) {
      const auto state = counts.find(text_of(member, "status"));
      if (state != counts.end()) ++state->second;
    }
    for (const auto& [state, count] : counts)
      text.add(node_label(process) + ",state=\"" + state + '"', count);
  }
}

// A sample for each GPU of the host of a node: `value` is a key of its description.
void add_gpus(Text& text, std::span<const Measured> processes, const char* value) {
  const Json::json_pointer gpus("/host/gpus");
  for (const Measured& process : processes) {
    if (!process.status.is_object() || !process.status.contains(gpus)) continue;
    int at = 0;
    for (const Json& gpu : process.status.at(gpus)) {
      const auto number = number_at(gpu, value);
      const std::string label = ",gpu=\"" + std::to_string(at++) + '"';
      if (number) text.add(node_label(process) + label, *number);
    }
  }
}

void add_shown(Text& text, std::span<const Measured> processes) {
  text.begin("dpwa_shown", gauge, "Numbers that the program shows, such as an accuracy.");
  for (const Measured& process : processes) {
    if (!process.status.is_object() || !process.status.contains("shown")) continue;
    const Json& shown = process.status.at("shown");
    if (!shown.is_object()) continue;
    std::size_t room = ShownNumbers::most_numbers;
    for (const auto& [name, value] : shown.items()) {
      if (room-- == 0) break;
      if (!value.is_number() || name.size() > ShownNumbers::longest_name) continue;
      text.add(node_label(process) + ",name=\"" + escaped(name) + '"', value.get<double>());
    }
  }
}

}  // namespace

std::string metrics_text(std::span<const Measured> processes) {
  Text text;
  text.begin("dpwa_build_info", gauge, "Version of dpwa, as a label.");
  text.add("version=\"" + escaped(version()) + '"', 1);
  text.begin("dpwa_up", gauge, "1 where the process answers.");
  for (const Measured& process : processes)
    text.add(node_label(process), process.status.is_object() ? 1 : 0);
  text.begin("dpwa_state", gauge, "1 with the state that the process is in as a label.");
  for (const Measured& process : processes) {
    const std::string state = text_of(process.status, "state");
    if (!state.empty()) text.add(node_label(process) + ",state=\"" + escaped(state) + '"', 1);
  }
  for (const Family& family : families()) {
    text.begin(family.name, family.type, family.help);
    for (const Measured& process : processes) {
      for (const Source& source : family.sources) {
        const auto value = number_at(process.status, source.path);
        const std::string label = *source.label == '\0' ? "" : std::string(",") + source.label;
        if (value) text.add(node_label(process) + label, *value * source.scale);
      }
    }
  }
  add_members(text, processes);
  add_shown(text, processes);
  text.begin("dpwa_gpu_busy_ratio", gauge,
             "Share of the time in which a GPU of the host computed.");
  add_gpus(text, processes, "/busy");
  text.begin("dpwa_gpu_memory_used_bytes", gauge, "Memory in use of a GPU of the host.");
  add_gpus(text, processes, "/memory_used_bytes");
  text.begin("dpwa_gpu_memory_bytes", gauge, "Memory of a GPU of the host.");
  add_gpus(text, processes, "/memory_bytes");
  return text.take();
}

}  // namespace dpwa
