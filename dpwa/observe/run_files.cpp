#include "dpwa/observe/run_files.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <stdexcept>

#include "dpwa/config/config.h"
#include "dpwa/config/keys.h"

namespace dpwa::observe {
namespace {

constexpr std::size_t points_of_run = 500;
constexpr std::string_view suffix = ".metrics.jsonl";
// Of NODE.result.json.
constexpr const char* of_trainer[] = {"dataset", "split",    "model",      "optimizer",
                                      "lr",      "schedule", "batch_size", "seed"};
constexpr const char* of_steps[] = {"loss", "clock", "step_ms", "waited_ms", "distance", "lr"};
constexpr std::array<std::pair<const char*, const char*>, 2> of_evaluations{
    {{"test_accuracy", "accuracy"}, {"test_loss", "test_loss"}}};

void take(const Json& record, const char* key, const char* name, Curves::Values& values) {
  const auto value = record.find(key);
  if (value != record.end() && value->is_number()) values[name] = value->get<double>();
}

double number_or_0(const Json& record, const char* key) {
  const auto value = record.find(key);
  return value != record.end() && value->is_number() ? value->get<double>() : 0;
}

// The one node of these curves, with the time among its lists.
Json only(const Curves& curves) {
  Json all = curves.to_json();
  Json lists{{"time", std::move(all["time"])}};
  for (const auto& [name, node] : all["nodes"].items()) lists.update(node);
  return lists;
}

// The keys of a cluster file with the values that hold; those of its nodes left out.
Json settings_of(const std::filesystem::path& file) {
  Json settings = Json::object();
  try {
    const Config config = load_cluster(file);
    for (const config::KeySection& section : config::key_table()) {
      for (const config::Key& key : section.keys) {
        if (key.name == "nodes" || key.name == "servers") continue;
        if (const auto value = key.print(config)) settings[config::path_of(section, key)] = *value;
      }
    }
    settings["nodes"] = std::to_string(config.nodes.size());
    for (const auto& [name, value] : config.interpolation.parameters)
      settings["interpolation." + name] = Json(value).dump();
  } catch (const ConfigError&) {
    // A run may have been started without a cluster file, or by a version with other keys.
  }
  return settings;
}

// The single values of a JSON file, as text.
Json summary_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  const Json document = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  Json values = Json::object();
  if (!document.is_object()) return values;
  for (const auto& [key, value] : document.items()) {
    if (key == "schema") continue;
    if (value.is_string()) values[key] = value;
    if (value.is_number() || value.is_boolean()) values[key] = value.dump();
  }
  return values;
}

// The wall clock at which the first of its processes began; 0: an older version wrote none.
double beginning_of(const std::filesystem::path& folder, const std::vector<std::string>& nodes) {
  double begun = 0;
  for (const std::string& node : nodes) {
    std::ifstream in(metrics_files(folder, node).front());
    std::string line;
    std::getline(in, line);
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const double wall = record.is_object() ? number_or_0(record, "wall") : 0;
    if (wall <= 0) continue;
    const double own = wall - number_or_0(record, "t");
    begun = begun > 0 ? std::min(begun, own) : own;
  }
  return begun;
}

// "w2" before "w10".
bool natural_order(const std::string& a, const std::string& b) {
  return std::pair(a.size(), a) < std::pair(b.size(), b);
}

std::string value_of(const Json& run, const std::string& key) {
  const Json& settings = run["settings"];
  return settings.contains(key) ? settings.value(key, "") : run["summary"].value(key, "");
}

Json differing_keys(const Json& runs) {
  std::set<std::string> keys;
  for (const Json& run : runs) {
    for (const char* const part : {"settings", "summary"}) {
      for (const auto& [key, value] : run[part].items()) keys.insert(key);
    }
  }
  Json differing = Json::array();
  for (const std::string& key : keys) {
    const std::string first = value_of(runs.front(), key);
    const auto differs = [&](const Json& run) { return value_of(run, key) != first; };
    if (std::ranges::any_of(runs, differs)) differing.push_back(key);
  }
  return differing;
}

}  // namespace

NodeRun::NodeRun(double begun)
    : begun_(begun), steps_(points_of_run), evaluations_(points_of_run) {}

void NodeRun::add(const std::string& line) {
  const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return;
  Curves::Values values;
  for (const auto& [key, name] : of_evaluations) take(record, key, name, values);
  const double wall = number_or_0(record, "wall");
  const double time = begun_ > 0 && wall > 0 ? wall - begun_ : number_or_0(record, "t");
  if (!values.empty()) return evaluations_.add(time, {{"", values}});
  ++made_;
  for (const char* const key : of_steps) take(record, key, key, values);
  steps_.add(time, {{"", values}});
  const std::string peer = field_text(record, "peer");
  if (peer == "-" || peer.empty()) return;
  auto& [ok, failed] = peers_[peer];
  ++(raw_text(record, "outcome") == "mixed" ? ok : failed);
}

Json NodeRun::to_json() const {
  Json out{{"made", made_},
           {"steps", only(steps_)},
           {"evaluations", only(evaluations_)},
           {"peers", Json::object()}};
  for (const auto& [name, counts] : peers_)
    out["peers"][name] = Json::array({counts.first, counts.second});
  return out;
}

std::vector<std::string> nodes_of_run(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(suffix)) names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  if (names.empty()) {
    throw std::runtime_error(folder.string() +
                             ": has no metrics; accepted: the folder of a run, with "
                             "NODE.metrics.jsonl");
  }
  std::ranges::sort(names, natural_order);
  return names;
}

std::vector<std::filesystem::path> metrics_files(const std::filesystem::path& folder,
                                                 const std::string& node) {
  std::vector<std::filesystem::path> files;
  for (int life = 1;; ++life) {
    auto earlier = folder / (node + ".metrics." + std::to_string(life) + ".jsonl");
    if (!std::filesystem::exists(earlier)) break;
    files.push_back(std::move(earlier));
  }
  files.push_back(folder / (node + std::string(suffix)));
  return files;
}

Json read_run(const std::filesystem::path& folder) {
  Json run{{"name", folder.string()},
           {"settings", settings_of(folder / "cluster.yaml")},
           {"summary", summary_of(folder / "summary.json")},
           {"nodes", Json::object()}};
  const std::vector<std::string> names = nodes_of_run(folder);
  const Json own = summary_of(folder / (names.front() + ".result.json"));
  for (const char* const key : of_trainer)
    if (own.contains(key)) run["settings"][key] = own[key];
  const double begun = beginning_of(folder, names);
  for (const std::string& name : names) {
    NodeRun node(begun);
    for (const auto& file : metrics_files(folder, name)) {
      std::ifstream in(file);
      for (std::string line; std::getline(in, line);) node.add(line);
    }
    run["nodes"][name] = node.to_json();
  }
  return run;
}

Json read_runs(const std::vector<std::filesystem::path>& folders) {
  Json out{{"mode", "runs"}, {"runs", Json::array()}};
  for (const auto& folder : folders) out["runs"].push_back(read_run(folder));
  out["differing"] = differing_keys(out["runs"]);
  return out;
}

}  // namespace dpwa::observe
